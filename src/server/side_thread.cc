#include "server/side_thread.h"

namespace skep {

void SideThread::Allow() {
  thread_ = std::thread([this] { Run(); });
  is_allowed_ = true;
}

void SideThread::Post(std::shared_ptr<SideJob> job) {
  {
    const MutexLock lock(mutex_);
    jobs_.push_back(std::move(job));
  }
  changed_.NotifyAll();
}

void SideThread::Run() {
  while (true) {
    std::shared_ptr<SideJob> job;
    {
      const MutexLock lock(mutex_);
      while (jobs_.empty() && !stops_) changed_.Wait(mutex_);
      if (stops_) return;
      job = std::move(jobs_.front());
      jobs_.pop_front();
    }
    if (job.use_count() == 1) continue;  // its task is gone, and nobody asks any more
    job->Run();
    job->is_done_.store(true, std::memory_order_release);  // (1)
    wake_();
  }
}

void SideThread::Stop() {
  is_allowed_ = false;
  {
    const MutexLock lock(mutex_);
    stops_ = true;
  }
  changed_.NotifyAll();
  if (thread_.joinable()) thread_.join();
}

}  // namespace skep
