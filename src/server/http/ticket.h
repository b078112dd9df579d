// The exchange of one request or message. Any thread may call it; it wakes the connection on the
// connections' thread.
#pragma once
#include <boost/asio/post.hpp>
#include <mutex>
#include <utility>

#include "server/http/connection.h"

namespace gimbal::http {

class Ticket final : public Exchange {
 public:
  Ticket(std::shared_ptr<Shared> shared, std::weak_ptr<Connection> c)
      : shared_(std::move(shared)), connection_(std::move(c)) {}

  void answer(Response r) override {
    {
      const std::lock_guard lock(mutex_);
      answer_ = std::move(r);
    }
    wake();
  }
  void stream(std::shared_ptr<Source> s) override {
    bool late = false;
    {
      const std::lock_guard lock(mutex_);
      late = let_go_;
      if (!late) source_ = s;
    }
    if (late) s->gone();
    else wake();
  }
  void open(Response head, std::shared_ptr<Messages> messages) override {
    {
      const std::lock_guard lock(mutex_);
      answer_ = std::move(head), messages_ = std::move(messages);
    }
    wake();
  }
  void wake() override {
    if (woken_.exchange(true)) return;
    asio::post(shared_->io, [c = connection_] {
      if (auto there = c.lock()) there->signal();
    });
  }

  // On the connection's thread.
  void looked() { woken_ = false; }
  std::optional<Response> take_answer() {
    const std::lock_guard lock(mutex_);
    return std::exchange(answer_, std::nullopt);
  }
  std::shared_ptr<Source> source() {
    const std::lock_guard lock(mutex_);
    return source_;
  }
  std::shared_ptr<Messages> messages() {
    const std::lock_guard lock(mutex_);
    return messages_;
  }
  void let_go() {
    const std::lock_guard lock(mutex_);
    source_.reset();
    let_go_ = true;
  }

 private:
  std::shared_ptr<Shared> shared_;
  std::weak_ptr<Connection> connection_;
  std::atomic<bool> woken_{false};
  std::mutex mutex_;
  std::optional<Response> answer_;
  std::shared_ptr<Source> source_;
  std::shared_ptr<Messages> messages_;
  bool let_go_ = false;
};

}  // namespace gimbal::http
