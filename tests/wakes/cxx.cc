// SPDX-License-Identifier: MIT
// The herd of herd.h in C++: 4 threads, 25 rounds; then 10 waits whose time is over, and 7 signals to nobody.
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

namespace farm
{
class Herd
{
      public:
	void member();
	void wake(int next);
	void wait_in_vain();

	static constexpr int size = 4;

      private:
	std::mutex mutex;
	std::condition_variable cond;
	int waiting = 0, turn = 0, begun = 0;
};

void Herd::member()
{
	std::unique_lock<std::mutex> lock(mutex);
	int me = begun++;
	for (;;) {
		turn = turn == me ? size : turn;
		cond.wait(lock, [&] { return turn == me || turn < 0 || (waiting++, false); });
		if (turn < 0)
			return;
		lock.unlock();
		lock.lock();
	}
}

void Herd::wake(int next)
{
	std::unique_lock<std::mutex> lock(mutex);
	while (waiting != size) {
		lock.unlock();
		std::this_thread::yield();
		lock.lock();
	}
	waiting = 0;
	turn = next;
	cond.notify_all();
}

void Herd::wait_in_vain()
{
	std::unique_lock<std::mutex> lock(mutex);
	for (int i = 0; i < 5; i++) {
		cond.wait_for(lock, std::chrono::microseconds(1));
		cond.wait_until(lock, std::chrono::system_clock::time_point());
	}
	lock.unlock();
	for (int i = 0; i < 7; i++)
		cond.notify_one();
}
}

int main()
{
	farm::Herd herd;
	std::vector<std::thread> threads;
	for (int i = 0; i < herd.size; i++)
		threads.emplace_back(&farm::Herd::member, &herd);
	for (int i = 0; i < 25; i++)
		herd.wake(i % herd.size);
	herd.wake(-1);
	for (auto &thread : threads)
		thread.join();
	herd.wait_in_vain();
}
