// SPDX-License-Identifier: MIT
//
// Java: java.util.concurrent, doing what run.c does, with the same options and the same line of output. It does
// everything twice: first until the compiler has been still for a while, then what is measured. The virtual machine's
// own threads are counted like all others, but hardly run by then, and are not kept to one processor.
//
// It has no event that stays set and is reset, no once that is an object, and no conditions that others evaluate; its
// guarded buffer is the one of the documentation of Condition. A ping-pong is played with a semaphore, or with two
// exchanges of an Exchanger.
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.lang.management.CompilationMXBean;
import java.lang.management.ManagementFactory;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BrokenBarrierException;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.Exchanger;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.ReadWriteLock;
import java.util.concurrent.locks.ReentrantLock;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;

public final class Peers {
    static final int READERS = 8;
    static final int WRITERS = 2;
    static final int SIDE = 4;
    static final int HOLD = 48;
    static final int MOST = 256;
    static final int MOST_OPS = 1000000;
    static final int WARM_SLICES = 3;
    static final int MOST_WARM_SLICES = 40;
    static final long WARM_SLICE_NS = 100000000;
    static final int LOOKS = 1000;

    static final Map<String, String> options = new HashMap<>(Map.ofEntries(
            Map.entry("object", "sem"), Map.entry("mode", "pair"), Map.entry("variant", ""),
            Map.entry("threads", "8"), Map.entry("section", "10"), Map.entry("think", "0"),
            Map.entry("capacity", "16"), Map.entry("ops", "20000"), Map.entry("limit-ms", "100"),
            Map.entry("waits", "0"), Map.entry("cpu", "0")));

    static String variant;
    static int threads;
    static int ops;
    static long limitNs;
    static boolean timed;
    static boolean oneProcessor;
    static volatile boolean stop;

    // What is told at the end.
    static long done;
    static long bytes;
    static double fairness;
    static double overtakings = -1;

    static final class Failed extends RuntimeException {
        private static final long serialVersionUID = 1;

        Failed(String why) {
            super(why);
        }
    }

    // ---- threads ----

    interface Body {
        void run(Worker w) throws InterruptedException, BrokenBarrierException;
    }

    static final class Worker extends Thread {
        final int number;
        final Body body;
        volatile long done;
        long value;
        long longest;

        Worker(int number, Body body) {
            this.number = number;
            this.body = body;
            setDaemon(true);
        }

        @Override
        public void run() {
            try {
                body.run(this);
                leave.await();
            } catch (Exception e) {
                e.printStackTrace();
                Runtime.getRuntime().halt(1);
            }
        }

        long before() {
            return timed ? System.nanoTime() : 0;
        }

        void after(long before) {
            if (timed)
                longest = Math.max(longest, System.nanoTime() - Math.max(before, regionBegan));
        }
    }

    static Worker[] workers = new Worker[0];

    static void start(int n, Body body) {
        workers = new Worker[n];
        for (int i = 0; i < n; i++)
            workers[i] = new Worker(i, body);
        for (Worker w : workers)
            w.start();
    }

    // They leave together: what has left is not counted.
    static final CountDownLatch leave = new CountDownLatch(1);

    static void join() throws InterruptedException {
        leave.countDown();
        for (Worker w : workers)
            w.join();
    }

    static double fairnessOf(int first, int n) {
        long most = 0;
        long fewest = Long.MAX_VALUE;
        for (int i = first; i < first + n; i++) {
            most = Math.max(most, workers[i].done);
            fewest = Math.min(fewest, workers[i].done);
        }
        return (double) most / Math.max(fewest, 1);
    }

    static void until(BooleanSupplier ready) {
        for (int looks = 0; !ready.getAsBoolean(); looks++) {
            if (oneProcessor || looks >= LOOKS)
                Thread.yield();
            else
                Thread.onSpinWait();
        }
    }

    // What was counted while it got warm.
    static void forget() {
        for (Worker w : workers) {
            w.done = 0;
            w.longest = 0;
            w.value = 0;
        }
        done = 0;
    }

    // ---- the region ----

    static volatile long regionBegan;
    static long seconds;
    static long voluntary;
    static long involuntary;

    static void control(String command) throws IOException {
        String where = System.getenv("VEZ_PERF_CONTROL");
        if (where == null)
            return;
        String[] ends = where.split(",");
        try (FileOutputStream out = new FileOutputStream("/proc/self/fd/" + ends[0]);
                FileInputStream in = new FileInputStream("/proc/self/fd/" + ends[1])) {
            out.write(command.getBytes());
            out.flush();
            if (in.read(new byte[16]) <= 0)
                throw new Failed("perf stat does not answer");
        }
    }

    static void readSwitches(int sign) throws IOException {
        try (DirectoryStream<Path> tasks = Files.newDirectoryStream(Path.of("/proc/self/task"))) {
            for (Path task : tasks)
                readSwitches(task, sign);
        }
    }

    static void readSwitches(Path task, int sign) throws IOException {
        try {
            for (String line : Files.readAllLines(task.resolve("status"))) {
                if (line.startsWith("voluntary_ctxt_switches:"))
                    voluntary += sign * Long.parseLong(line.substring(24).trim());
                else if (line.startsWith("nonvoluntary_ctxt_switches:"))
                    involuntary += sign * Long.parseLong(line.substring(27).trim());
            }
        } catch (NoSuchFileException gone) {
            return; // one of the virtual machine's own
        }
    }

    // This thread, and those that it makes from now on.
    static void pin(String cpu) throws IOException, InterruptedException {
        String self = Path.of("/proc/thread-self").toRealPath().getFileName().toString();
        Process taskset = new ProcessBuilder("taskset", "-pc", cpu, self).redirectErrorStream(true)
                .redirectOutput(ProcessBuilder.Redirect.DISCARD).start();
        if (taskset.waitFor() != 0)
            throw new Failed("cannot run on processor " + cpu);
    }

    interface Slice {
        void run(long until) throws Exception;
    }

    // Runs slices until the compiler is still.
    static void warm(Slice slice) throws Exception {
        CompilationMXBean compiler = ManagementFactory.getCompilationMXBean();
        long before = -1;
        for (int i = 0; i < MOST_WARM_SLICES; i++) {
            long now = compiler.getTotalCompilationTime();
            if (i >= WARM_SLICES && now == before)
                break;
            before = now;
            slice.run(System.nanoTime() + WARM_SLICE_NS);
        }
    }

    static void regionBegins() throws IOException {
        System.gc();
        readSwitches(1);
        readSwitches(-1); // so that reading is warm, too
        voluntary = 0;
        involuntary = 0;
        readSwitches(-1);
        control("enable\n");
        regionBegan = System.nanoTime();
    }

    static void regionEnds() throws IOException {
        seconds = System.nanoTime() - regionBegan;
        control("disable\n");
        readSwitches(1);
    }

    // How many bytes one takes, with all that it is made of.
    static <T> T measured(Supplier<T> make) {
        final int n = 1000;
        Object[] kept = new Object[n];
        com.sun.management.ThreadMXBean bean = (com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean();
        for (int i = 0; i < n; i++)
            kept[i] = make.get();
        long before = bean.getCurrentThreadAllocatedBytes();
        for (int i = 0; i < n; i++)
            kept[i] = make.get();
        bytes = (bean.getCurrentThreadAllocatedBytes() - before) / n;
        return make.get();
    }

    static void onlyWay() {
        if (!variant.isEmpty())
            throw new Failed("java has no such variant");
    }

    static boolean fair() {
        if (!variant.isEmpty() && !variant.equals("fair"))
            throw new Failed("java has no such variant");
        return variant.equals("fair");
    }

    interface Loop {
        void run(long n);
    }

    static void alone(Loop pairs) throws Exception {
        warm(until -> {
            while (System.nanoTime() < until)
                pairs.run(10000);
        });
        regionBegins();
        pairs.run(ops);
        regionEnds();
        done = ops;
    }

    // ---- sem ----

    static final AtomicLong arrived = new AtomicLong();
    static final AtomicLong returned = new AtomicLong();
    static long released;

    static void semPair() throws Exception {
        boolean fair = fair();
        Semaphore sem = measured(() -> new Semaphore(1, fair));
        alone(n -> {
            for (; n > 0; n--) {
                sem.acquireUninterruptibly();
                sem.release();
            }
        });
    }

    static boolean allWait() {
        return returned.get() == released && arrived.get() == released + threads;
    }

    static void grant(Semaphore[] sems, int burst, long until) {
        while (released < MOST_OPS - MOST && System.nanoTime() < until) {
            Semaphore next = sems[(int) (released / burst % 2)];
            released += burst;
            next.release(burst);
            until(Peers::allWait);
        }
    }

    // Those who are served together must have come before all who wait at the same one and are not.
    static double overtakings(short[] served, int burst, boolean two) {
        long wrong = 0;
        long[] since = new long[threads];
        int[] at = new int[threads];
        for (int i = 0; i < threads; i++) {
            since[i] = i - threads;
            at[i] = i < burst ? 0 : 1;
        }
        for (long i = 0; i < released; i += burst) {
            int here = (int) (i / burst % 2);
            long latest = Long.MIN_VALUE;
            for (int k = 0; k < burst; k++) {
                int one = served[(int) i + k];
                latest = Math.max(latest, since[one]);
                since[one] = i / burst;
                at[one] = 1 - at[one];
            }
            for (int k = 0; k < threads; k++)
                if (since[k] < latest && (!two || at[k] == here))
                    wrong++;
        }
        return (double) wrong / released;
    }

    // Of two semaphores by turns, or of one; see run.c.
    static void semGrants(int burst, boolean two) throws Exception {
        boolean fair = fair();
        Semaphore one = measured(() -> new Semaphore(0, fair));
        Semaphore[] sems = { one, two ? new Semaphore(0, fair) : one };
        short[] served = new short[MOST_OPS + MOST];
        workers = new Worker[threads];
        for (int i = 0; i < threads; i++) {
            long expected = i + 1;
            workers[i] = new Worker(i, w -> {
                for (int at = w.number < burst ? 0 : 1;; at = 1 - at) {
                    arrived.getAndIncrement();
                    long before = w.before();
                    sems[at].acquireUninterruptibly();
                    if (stop)
                        return;
                    w.after(before);
                    w.done++;
                    served[(int) returned.getAndIncrement()] = (short) w.number;
                }
            });
            workers[i].start();
            until(() -> arrived.get() == expected);
        }
        Thread.sleep(2);
        warm(until -> grant(sems, burst, until));
        long first = released;
        forget();
        regionBegins();
        grant(sems, burst, System.nanoTime() + limitNs);
        regionEnds();
        done = released - first;
        fairness = fairnessOf(0, threads);
        stop = true;
        for (Semaphore sem : sems)
            sem.release(threads);
        join();
        overtakings = overtakings(served, burst, two);
    }

    // ---- mutex ----

    static volatile long guarded;
    static long count;
    static int steps;

    static long compute(long value, int n) {
        for (; n > 0; n--)
            value = value * 6364136223846793005L + 1442695040888963407L;
        return value;
    }

    static int stepsFor(double ns) {
        final int n = 2000000;
        double best = 1e9;
        for (int i = 0; i < 20; i++) {
            long before = System.nanoTime();
            guarded = compute(guarded, n);
            best = Math.min(best, (double) (System.nanoTime() - before) / n);
        }
        return (int) (ns / best + 0.5);
    }

    static ReentrantLock lock() {
        boolean fair = fair();
        return measured(() -> new ReentrantLock(fair));
    }

    static void mutexPair() throws Exception {
        ReentrantLock lock = lock();
        alone(n -> {
            for (; n > 0; n--) {
                lock.lock();
                lock.unlock();
            }
        });
    }

    static CyclicBarrier begin;
    static CyclicBarrier end;
    static volatile boolean over;

    // The next phase of all has begun; false: there is none.
    static boolean begun() throws InterruptedException, BrokenBarrierException {
        begin.await();
        return !over;
    }

    static void allPhasesAreOver() throws Exception {
        over = true;
        begin.await();
        join();
    }

    static final class Guarded {
        long value;
        long count;
    }

    static void contend(ReentrantLock lock, Guarded guarded, Worker w) {
        long mine = 0;
        while (!stop) {
            long before = w.before();
            lock.lock();
            try {
                w.after(before);
                guarded.value = compute(guarded.value, steps);
                guarded.count++;
            } finally {
                lock.unlock();
            }
            w.value = compute(w.value, steps);
            mine++;
        }
        w.done = mine;
    }

    static void quotas() throws InterruptedException, BrokenBarrierException {
        begin.await();
        end.await();
    }

    static void phase(long ns) throws InterruptedException, BrokenBarrierException {
        stop = false;
        begin.await();
        Thread.sleep(ns / 1000000);
        stop = true;
        end.await();
    }

    static void mutexContended() throws Exception {
        ReentrantLock lock = lock();
        Guarded shared = new Guarded();
        steps = stepsFor(Double.parseDouble(options.get("section")));
        begin = new CyclicBarrier(threads + 1);
        end = new CyclicBarrier(threads + 1);
        start(threads, w -> {
            while (begun()) {
                contend(lock, shared, w);
                end.await();
            }
        });
        warm(until -> phase(WARM_SLICE_NS));
        forget();
        long first = shared.count;
        Thread.sleep(2);
        regionBegins();
        phase(limitNs);
        regionEnds();
        allPhasesAreOver();
        for (Worker w : workers)
            done += w.done;
        if (done != shared.count - first)
            throw new Failed(done + " operations, but " + (shared.count - first) + " were counted inside");
        fairness = fairnessOf(0, threads);
    }

    // ---- rwlock ----

    static final AtomicBoolean firstIsDone = new AtomicBoolean();
    static int think;

    static final class Pair {
        long first;
        long second;
    }

    static void spend(int pauses) {
        for (; pauses > 0; pauses--)
            Thread.onSpinWait();
    }

    static void stay() {
        Thread.yield();
        spend(HOLD);
    }

    static void tellFairness() {
        if (firstIsDone.getAndSet(true))
            return;
        double sides = Math.max(fairnessOf(0, READERS), fairnessOf(READERS, WRITERS));
        fairness = Math.max(sides, fairnessOf(0, READERS + WRITERS));
    }

    static void visit(ReadWriteLock lock, Pair data, Worker w, int quota) {
        Lock mine = w.number < READERS ? lock.readLock() : lock.writeLock();
        boolean writes = w.number >= READERS;
        while (w.done < quota) {
            long before = w.before();
            mine.lock();
            try {
                w.after(before);
                long seen = data.first;
                if (writes)
                    data.first++;
                stay();
                if (writes)
                    data.second++;
                else if (seen != data.second)
                    throw new Failed("a reader and a writer at the same time");
            } finally {
                mine.unlock();
            }
            w.done++;
            spend(think);
        }
        tellFairness();
    }

    static void rwlockWork() throws Exception {
        int n = READERS + WRITERS;
        boolean fair = fair();
        ReadWriteLock lock = measured(() -> new ReentrantReadWriteLock(fair));
        Pair data = new Pair();
        think = Integer.parseInt(options.get("think"));
        begin = new CyclicBarrier(n + 1);
        end = new CyclicBarrier(n + 1);
        start(n, w -> {
            while (begun()) {
                visit(lock, data, w, ops / n);
                end.await();
            }
        });
        warm(until -> {
            forget();
            quotas();
        });
        forget();
        firstIsDone.set(false);
        Thread.sleep(2);
        long written = data.first;
        regionBegins();
        quotas();
        regionEnds();
        allPhasesAreOver();
        done = ops / n * n;
        if (data.first != written + ops / n * WRITERS)
            throw new Failed("writes were lost");
    }

    static void rwlockPair(boolean writes) throws Exception {
        boolean fair = fair();
        ReadWriteLock both = measured(() -> new ReentrantReadWriteLock(fair));
        Lock lock = writes ? both.writeLock() : both.readLock();
        alone(n -> {
            for (; n > 0; n--) {
                lock.lock();
                lock.unlock();
            }
        });
    }

    // ---- buffer and queue ----

    interface Buffer {
        void put(long item) throws InterruptedException;

        long take() throws InterruptedException;
    }

    // The bounded buffer of the documentation of Condition.
    static final class Guards implements Buffer {
        final ReentrantLock lock = new ReentrantLock();
        final Condition notFull = lock.newCondition();
        final Condition notEmpty = lock.newCondition();
        long[] items;
        int first;
        int length;

        @Override
        public void put(long item) throws InterruptedException {
            lock.lock();
            try {
                while (length == items.length)
                    notFull.await();
                int at = first + length++;
                items[at < items.length ? at : at - items.length] = item;
                notEmpty.signal();
            } finally {
                lock.unlock();
            }
        }

        @Override
        public long take() throws InterruptedException {
            lock.lock();
            try {
                while (length == 0)
                    notEmpty.await();
                long item = items[first];
                first = first + 1 < items.length ? first + 1 : 0;
                length--;
                notFull.signal();
                return item;
            } finally {
                lock.unlock();
            }
        }
    }

    static final class Queue implements Buffer {
        final ArrayBlockingQueue<Long> queue;

        Queue(ArrayBlockingQueue<Long> queue) {
            this.queue = queue;
        }

        @Override
        public void put(long item) throws InterruptedException {
            queue.put(item);
        }

        @Override
        public long take() throws InterruptedException {
            return queue.take();
        }
    }

    static void produce(Buffer buffer, Worker w, int share) throws InterruptedException {
        for (int i = 1; i <= share; i++) {
            long before = w.before();
            buffer.put((long) w.number << 48 | i);
            w.after(before);
        }
    }

    static void consume(Buffer buffer, Worker w, int share) throws InterruptedException {
        long[] last = new long[SIDE];
        for (int i = 0; i < share; i++) {
            long before = w.before();
            long item = buffer.take();
            w.after(before);
            int producer = (int) (item >>> 48);
            long number = item & (-1L >>> 16);
            if (number <= last[producer])
                throw new Failed("not FIFO");
            last[producer] = number;
            w.value += number;
        }
    }

    static void pass(Buffer buffer) throws Exception {
        int share = ops / SIDE;
        begin = new CyclicBarrier(2 * SIDE + 1);
        end = new CyclicBarrier(2 * SIDE + 1);
        start(2 * SIDE, w -> {
            while (begun()) {
                if (w.number < SIDE)
                    produce(buffer, w, share);
                else
                    consume(buffer, w, share);
                end.await();
            }
        });
        warm(until -> quotas());
        forget();
        Thread.sleep(2);
        regionBegins();
        quotas();
        regionEnds();
        allPhasesAreOver();
        long sum = 0;
        for (Worker w : workers)
            sum += w.value;
        if (sum != SIDE * ((long) share * (share + 1) / 2))
            throw new Failed("not conserved");
        done = (long) share * SIDE;
    }

    static void bufferPass() throws Exception {
        onlyWay();
        Guards buffer = measured(Guards::new);
        buffer.items = new long[Integer.parseInt(options.get("capacity"))];
        pass(buffer);
    }

    static void queuePass() throws Exception {
        boolean fair = fair();
        int capacity = Integer.parseInt(options.get("capacity"));
        measured(() -> new ArrayBlockingQueue<Long>(1, fair));
        pass(new Queue(new ArrayBlockingQueue<>(capacity, fair)));
    }

    // ---- barrier ----

    static volatile long lastRound = Long.MAX_VALUE;

    static void meet(CyclicBarrier barrier, Worker own) throws InterruptedException, BrokenBarrierException {
        own.done++;
        long before = own.before();
        barrier.await();
        own.after(before);
        for (Worker w : workers)
            if (w.done < own.done)
                throw new Failed("a party went on alone");
    }

    // The calling thread is the first party; it counts its rounds from the beginning, as all do.
    static void barrierMeet() throws Exception {
        onlyWay();
        CyclicBarrier barrier = measured(() -> new CyclicBarrier(threads));
        workers = new Worker[threads];
        for (int i = 0; i < threads; i++)
            workers[i] = new Worker(i, w -> {
                do
                    meet(barrier, w);
                while (w.done < lastRound);
            });
        for (int i = 1; i < threads; i++)
            workers[i].start();
        Worker own = workers[0];
        warm(until -> {
            while (System.nanoTime() < until)
                meet(barrier, own);
        });
        long first = own.done;
        for (Worker w : workers)
            w.longest = 0;
        regionBegins();
        for (long until = System.nanoTime() + limitNs; System.nanoTime() < until;)
            meet(barrier, own);
        regionEnds();
        done = own.done - first;
        lastRound = own.done + 1;
        meet(barrier, own);
        leave.countDown();
        for (int i = 1; i < threads; i++)
            workers[i].join();
    }

    // ---- event ----

    interface Event {
        void set() throws InterruptedException;

        void await() throws InterruptedException;
    }

    static Event[] semaphores() {
        Event[] places = new Event[2];
        for (int i = 0; i < 2; i++) {
            Semaphore sem = measured(() -> new Semaphore(0));
            places[i] = new Event() {
                @Override
                public void set() {
                    sem.release();
                }

                @Override
                public void await() {
                    sem.acquireUninterruptibly();
                }
            };
        }
        return places;
    }

    // An exchange is a set and the wait for it: who sets waits until it is taken.
    static Event[] exchangers() {
        Event[] places = new Event[2];
        for (int i = 0; i < 2; i++) {
            Exchanger<Object> exchanger = measured(() -> new Exchanger<>());
            places[i] = new Event() {
                @Override
                public void set() throws InterruptedException {
                    exchanger.exchange(this);
                }

                @Override
                public void await() throws InterruptedException {
                    exchanger.exchange(this);
                }
            };
        }
        return places;
    }

    static void play(Event[] places, long until) throws InterruptedException {
        while (System.nanoTime() < until) {
            places[0].set();
            places[1].await();
            done++;
        }
    }

    static void eventPingpong() throws Exception {
        Event[] places = variant.equals("exchanger") ? exchangers() : semaphores();
        if (!variant.isEmpty() && !variant.equals("exchanger"))
            throw new Failed("java has no such event");
        start(1, w -> {
            while (true) {
                long before = w.before();
                places[0].await();
                if (stop)
                    return;
                w.after(before);
                places[1].set();
            }
        });
        warm(until -> play(places, until));
        forget();
        regionBegins();
        play(places, System.nanoTime() + limitNs);
        regionEnds();
        stop = true;
        places[0].set();
        join();
    }

    // ---- latch ----

    static final CountDownLatch[] latches = new CountDownLatch[2];
    static final AtomicLong[] waiting = { new AtomicLong(), new AtomicLong() };
    static long opened;

    static void openGate() {
        int here = (int) (opened % 2);
        int other = 1 - here;
        until(() -> waiting[here].get() == threads);
        waiting[other].set(0);
        CountDownLatch latch = latches[here];
        latches[other] = new CountDownLatch(1);
        opened++;
        latch.countDown();
    }

    static void latchGate() throws Exception {
        onlyWay();
        latches[0] = measured(() -> new CountDownLatch(1));
        latches[1] = new CountDownLatch(1);
        start(threads, w -> {
            for (int turn = 0; !stop; turn = 1 - turn) {
                CountDownLatch mine = latches[turn];
                waiting[turn].getAndIncrement();
                long before = w.before();
                mine.await();
                w.after(before);
            }
        });
        warm(until -> {
            while (System.nanoTime() < until)
                openGate();
        });
        forget();
        regionBegins();
        for (long until = System.nanoTime() + limitNs; System.nanoTime() < until; done++)
            openGate();
        regionEnds();
        until(() -> waiting[(int) (opened % 2)].get() == threads);
        stop = true;
        openGate();
        join();
    }

    // ---- token ----

    static void callOff() {
        Worker w = workers[(int) (released % threads)];
        long before = w.done;
        released++;
        w.interrupt();
        until(Peers::allWait);
        if (w.done != before + 1)
            throw new Failed("another was called off");
    }

    static void waitForCallOff(ReentrantLock lock, Condition never, Worker w) {
        long before = w.before();
        lock.lock();
        try {
            while (true)
                never.await();
        } catch (InterruptedException e) {
            w.after(before);
        } finally {
            lock.unlock();
        }
    }

    static void tokenCallOff() throws Exception {
        onlyWay();
        ReentrantLock lock = new ReentrantLock();
        Condition never = lock.newCondition();
        start(threads, w -> {
            while (true) {
                arrived.getAndIncrement();
                waitForCallOff(lock, never, w);
                if (stop)
                    return;
                w.done++;
                returned.getAndIncrement();
            }
        });
        until(Peers::allWait);
        Thread.sleep(2);
        warm(until -> {
            while (System.nanoTime() < until)
                callOff();
        });
        forget();
        regionBegins();
        for (long until = System.nanoTime() + limitNs; System.nanoTime() < until; done++)
            callOff();
        regionEnds();
        stop = true;
        for (Worker w : workers)
            w.interrupt();
        join();
    }

    // ---- the program ----

    static void run(String workload) throws Exception {
        switch (workload) {
            case "sem pair": semPair(); break;
            case "sem lockstep": semGrants(1, false); break;
            case "sem bursts": semGrants(threads / 2, true); break;
            case "mutex pair": mutexPair(); break;
            case "mutex contended": mutexContended(); break;
            case "rwlock rd": rwlockPair(false); break;
            case "rwlock wr": rwlockPair(true); break;
            case "rwlock work": rwlockWork(); break;
            case "buffer pass": bufferPass(); break;
            case "queue pass": queuePass(); break;
            case "barrier meet": barrierMeet(); break;
            case "event pingpong": eventPingpong(); break;
            case "latch gate": latchGate(); break;
            case "token call-off": tokenCallOff(); break;
            default: throw new Failed("java has no such " + workload);
        }
    }

    static void print(String workload) {
        StringBuilder line = new StringBuilder();
        double n = done;
        line.append(String.format("{\"scenario\": \"peers\", \"impl\": \"java%s%s\", ",
                variant.isEmpty() ? "" : ":", variant));
        line.append(String.format("\"mode\": \"%s\", \"waiters\": %d, ", workload, threads));
        line.append(String.format("\"cpu\": \"%s\", \"ops\": %d, \"seconds\": %.6f, \"ns_per_op\": %.2f, ",
                options.get("cpu"), done, seconds / 1e9, seconds / n));
        line.append(String.format("\"switches_per_op\": %.4f, \"voluntary\": %d, \"involuntary\": %d, ",
                (voluntary + involuntary) / n, voluntary, involuntary));
        line.append("\"futex_per_op\": null");
        if (bytes > 0)
            line.append(String.format(", \"bytes\": %d", bytes));
        if (fairness > 0)
            line.append(String.format(", \"fairness\": %.3f", fairness));
        if (overtakings >= 0)
            line.append(String.format(", \"overtakings\": %.3f", overtakings));
        if (timed) {
            long longest = 0;
            for (Worker w : workers)
                longest = Math.max(longest, w.longest);
            line.append(String.format(", \"longest_wait_us\": %.3f", longest / 1e3));
        }
        System.out.println(line.append("}"));
    }

    public static void main(String[] arguments) throws Exception {
        for (String argument : arguments) {
            int equals = argument.indexOf('=');
            if (!argument.startsWith("--") || equals < 0 || !options.containsKey(argument.substring(2, equals))) {
                System.err.println("unknown: " + argument);
                System.exit(2);
            }
            options.put(argument.substring(2, equals), argument.substring(equals + 1));
        }
        variant = options.get("variant");
        threads = Integer.parseInt(options.get("threads"));
        ops = Integer.parseInt(options.get("ops"));
        limitNs = Long.parseLong(options.get("limit-ms")) * 1000000;
        timed = !options.get("waits").equals("0");
        oneProcessor = !options.get("cpu").equals("any");
        String workload = options.get("object") + " " + options.get("mode");
        try {
            if (oneProcessor)
                pin(options.get("cpu"));
            run(workload);
        } catch (Failed failed) {
            System.err.println(failed.getMessage());
            System.exit(1);
        }
        print(workload);
        System.exit(0);
    }
}
