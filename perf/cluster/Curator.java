// SPDX-License-Identifier: MIT
/*
 * A hand-over of Apache Curator's recipes, measured as those of cluster.c are: --waiters clients wait in line; each, when
 * it has its turn, gives it to the next. The time is from the beginning of a release until the next one knows; packets
 * and events are what the servers counted.
 *
 * Implementations: curator, InterProcessMutex; curator-sem, InterProcessSemaphoreV2 of one lease. Hand-overs before the
 * measurement warm the machine up.
 *
 * Checked: that each has its turn, after the one before. Seen to fail: a semaphore of two leases.
 */
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.Socket;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.retry.RetryOneTime;

public final class Curator {
	private static final int SESSION_MS = 60000;
	private static final int WARM_UP = 300;
	private static String servers;
	private static CuratorFramework looks;

	private static final class Fault extends RuntimeException {
		private static final long serialVersionUID = 1;

		Fault(String what) {
			super(what);
		}
	}

	private static CuratorFramework open() throws Exception {
		CuratorFramework c = CuratorFrameworkFactory.newClient(servers, SESSION_MS, 10000, new RetryOneTime(100));
		c.start();
		if (!c.blockUntilConnected(30, TimeUnit.SECONDS))
			throw new Fault("no connection");
		return c;
	}

	/* ---- what the servers count ---- */

	private static long[] look() throws Exception {
		Pattern counts = Pattern.compile("recved=(\\d+),sent=(\\d+)");
		long received = 0, sent = 0;
		for (String server : servers.split(",")) {
			String[] at = server.split(":");
			try (Socket s = new Socket(at[0], Integer.parseInt(at[1]))) {
				s.getOutputStream().write("cons".getBytes("US-ASCII"));
				BufferedReader answer = new BufferedReader(new InputStreamReader(s.getInputStream(), "US-ASCII"));
				for (String line; (line = answer.readLine()) != null;) {
					Matcher m = counts.matcher(line);
					if (line.contains("sid=") && m.find()) {
						received += Long.parseLong(m.group(1));
						sent += Long.parseLong(m.group(2));
					}
				}
			}
		}
		return new long[] {received, sent};
	}

	/* When nothing happens any more. */
	private static long[] lookWhenQuiet() throws Exception {
		long[] before = look();
		for (int same = 0; same < 5;) {
			Thread.sleep(1);
			long[] now = look();
			same = Arrays.equals(now, before) ? same + 1 : 0;
			before = now;
		}
		return before;
	}

	private static int below(String path) throws Exception {
		return looks.checkExists().forPath(path) == null ? 0 : looks.getChildren().forPath(path).size();
	}

	/* ---- one that waits: a thread, since a mutex belongs to the one that took it ---- */

	private static final class Waiter extends Thread {
		final CuratorFramework c;
		final Semaphore asked = new Semaphore(0), had = new Semaphore(0), gives = new Semaphore(0);
		final Semaphore gave = new Semaphore(0);
		final String path;
		final boolean sem;
		volatile long began, got;
		volatile Exception failed;

		Waiter(String path, boolean sem) throws Exception {
			this.c = open();
			this.path = path;
			this.sem = sem;
			setDaemon(true);
			start();
		}

		@Override
		public void run() {
			try {
				InterProcessMutex mutex = sem ? null : new InterProcessMutex(c, path);
				InterProcessSemaphoreV2 s = sem ? new InterProcessSemaphoreV2(c, path, 1) : null;
				for (;;) {
					asked.acquire();
					Lease lease = null;
					if (sem)
						lease = s.acquire();
					else
						mutex.acquire();
					got = System.nanoTime();
					had.release();
					gives.acquire();
					began = System.nanoTime();
					if (sem)
						s.returnLease(lease);
					else
						mutex.release();
					gave.release();
				}
			} catch (Exception e) {
				failed = e;
			}
		}
	}

	private static void await(Semaphore what, Waiter w) throws Exception {
		while (!what.tryAcquire(1, TimeUnit.SECONDS))
			if (w.failed != null)
				throw w.failed;
	}

	/* Whether so many are in line. Of a semaphore the first has its lease, the second has asked for one, the others
	 * wait for its lock. */
	private static boolean areInLine(String path, boolean sem, int count) throws Exception {
		if (!sem)
			return below(path) == count;
		return below(path + "/locks") == Math.max(count - 1, 0) && below(path + "/leases") == Math.min(count, 2);
	}

	private static void awaitLine(String path, boolean sem, int count) throws Exception {
		for (int tries = 0; !areInLine(path, sem, count); tries++) {
			if (tries > 10000)
				throw new Fault("there are not " + count + " in line");
			Thread.sleep(1);
		}
	}

	private static double[] handOver(List<Waiter> line, String path, boolean sem, long[] counted) throws Exception {
		int n = line.size();
		double[] took = new double[n - 1];
		for (int i = 0; i < n; i++) {
			line.get(i).asked.release();
			awaitLine(path, sem, i + 1);
		}
		await(line.get(0).had, line.get(0));
		long[] before = lookWhenQuiet();
		for (int i = 0; i + 1 < n; i++) {
			Waiter one = line.get(i), next = line.get(i + 1);
			if (next.had.availablePermits() > 0)
				throw new Fault((i + 1) + " is told before its turn");
			one.gives.release();
			await(next.had, next);
			await(one.gave, one);
			took[i] = (next.got - one.began) / 1e9;
		}
		long[] after = lookWhenQuiet();
		counted[0] += after[0] - before[0];
		counted[1] += after[1] - before[1];
		Waiter last = line.get(n - 1);
		last.gives.release();
		await(last.gave, last);
		awaitLine(path, sem, 0);
		return took;
	}

	public static void main(String[] args) throws Exception {
		Map<String, String> options = new HashMap<>(Map.of("impl", "curator", "waiters", "8", "ops", "200"));
		for (String a : args)
			options.put(a.substring(2, a.indexOf('=')), a.substring(a.indexOf('=') + 1));
		int waiters = Integer.parseInt(options.get("waiters")), ops = Integer.parseInt(options.get("ops"));
		boolean sem = options.get("impl").equals("curator-sem");
		servers = System.getenv("VEZ_CLUSTER_SERVERS");
		looks = open();
		String path = "/curator-" + ProcessHandle.current().pid();
		List<Waiter> line = new ArrayList<>();
		for (int i = 0; i < waiters; i++)
			line.add(new Waiter(path, sem));
		for (int done = 0; done < WARM_UP; done += waiters - 1)
			handOver(line, path, sem, new long[2]);
		long[] counted = new long[2];
		List<Double> took = new ArrayList<>();
		while (took.size() < ops)
			for (double t : handOver(line, path, sem, counted))
				took.add(t);
		took.sort(null);
		double n = took.size();
		System.out.printf("{\"scenario\": \"cluster\", \"impl\": \"%s\", \"mode\": \"handover\", \"waiters\": %d, \"ops\": %d, "
				+ "\"packets\": %.3f, \"events\": %.3f, \"median_us\": %.1f}%n",
				options.get("impl"), waiters, took.size(), (counted[0] + counted[1]) / n,
				(counted[1] - counted[0]) / n, took.get(took.size() / 2) * 1e6);
		System.out.flush();
		Runtime.getRuntime().halt(0);
	}
}
