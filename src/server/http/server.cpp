#include "server/http/server.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>

#include "base/clock.h"
#include "base/format.h"
#include "server/http/connection.h"

namespace gimbal::http {
namespace {

using asio::ip::tcp;
using boost::system::error_code;

asio::ip::address address_of(const std::string& host, error_code& e) {
  return asio::ip::make_address(host == "localhost" ? "127.0.0.1" : host, e);
}

class Listener final : public Server {
 public:
  Listener(Handler& handler, const Options& o)
      : shared_(std::make_shared<Shared>(handler, o.limits, o.handler_threads)),
        acceptor_(shared_->io),
        pause_(shared_->io),
        clock_(shared_->io) {}

  // Waits for running handlers.
  ~Listener() override { shared_->pool.join(); }

  Status open(const Options& o) {
    certificate_ = o.tls_certificate, key_ = o.tls_key;
    if (!certificate_.empty()) {
      auto tls = TlsContext::load(certificate_, key_);
      if (!tls) return tls.error();
      shared_->tls = std::move(*tls);
    }
    error_code e;
    const auto address = address_of(o.host, e);
    if (e)
      return Error{Code::Usage,
                   format("'{}' is not an address to listen on", o.host),
                   "give one such as 127.0.0.1, 0.0.0.0 or ::1",
                   "",
                   "host",
                   o.host,
                   "an address"};
    const tcp::endpoint end(address, o.port);
    acceptor_.open(end.protocol(), e);
    if (!e) acceptor_.set_option(tcp::acceptor::reuse_address(true), e);
    if (!e) acceptor_.bind(end, e);
    if (!e) acceptor_.listen(4096, e);
    if (!e) acceptor_.non_blocking(true, e);
    if (e)
      return Error{Code::Failed,
                   format("cannot listen on {}, port {}: {}", o.host, o.port, e.message()),
                   "choose another port, or stop the program that uses it",
                   "",
                   "port",
                   format("{}", o.port)};
    const tcp::endpoint bound = acceptor_.local_endpoint(e);
    port_ = bound.port();
    const std::string host = address.to_string();
    address_ = address.is_v6() ? format("[{}]:{}", host, port_) : format("{}:{}", host, port_);
    return Done{};
  }

  std::string address() const override { return address_; }
  uint16_t port() const override { return port_; }

  void run() override {
    shared_->changed = [this] { look(); };
    asio::co_spawn(shared_->io, accept(), asio::detached);
    asio::co_spawn(shared_->io, watch_time(), asio::detached);
    shared_->io.run();
    shared_->changed = [] {};
  }

  Status renew_certificate() override {
    if (certificate_.empty()) return Done{};
    auto tls = TlsContext::load(certificate_, key_);
    if (!tls) return tls.error();
    asio::post(shared_->io, [this, tls = std::move(*tls)] { shared_->tls = tls; });
    return Done{};
  }

  void drain() override {
    asio::post(shared_->io, [this] {
      shared_->draining = true;
      const auto all = shared_->connections;
      for (const auto& c : all) c->drain();
      look();
    });
  }

  void stop() override {
    asio::post(shared_->io, [this] { end(); });
  }

 private:
  void end() {
    ended_ = true;
    error_code e;
    acceptor_.close(e);
    pause_.cancel();
    clock_.cancel();
    const auto all = shared_->connections;
    for (const auto& c : all) c->close();
  }

  void look() {
    if (shared_->draining && !shared_->owed && !ended_) end();
  }

  asio::awaitable<void> accept() {
    error_code e;
    while (!ended_) {
      co_await acceptor_.async_wait(tcp::acceptor::wait_read, asio::redirect_error(asio::use_awaitable, e));
      if (ended_) break;
      Socket socket(shared_->io);
      acceptor_.accept(socket, e);
      if (!e && shared_->connections.size() < shared_->limits.connections) {
        const auto c = std::make_shared<Connection>(shared_, std::move(socket));
        shared_->connections.push_back(c);
        c->start();
      } else if (e == asio::error::no_descriptors || e == asio::error::no_memory ||
                 e == boost::system::errc::too_many_files_open_in_system) {
        // The one that waits keeps the acceptor readable: without a pause this would spin.
        pause_.expires_after(std::chrono::milliseconds(100));
        co_await pause_.async_wait(asio::redirect_error(asio::use_awaitable, e));
      }
    }
  }

  asio::awaitable<void> watch_time() {
    error_code e;
    while (!ended_) {
      clock_.expires_after(std::chrono::milliseconds(250));
      co_await clock_.async_wait(asio::redirect_error(asio::use_awaitable, e));
      const auto all = shared_->connections;
      for (const auto& c : all) c->check_time(now());
    }
  }

  std::shared_ptr<Shared> shared_;
  tcp::acceptor acceptor_;
  asio::steady_timer pause_, clock_;
  std::string address_, certificate_, key_;
  uint16_t port_ = 0;
  bool ended_ = false;
};

}  // namespace

Result<std::unique_ptr<Server>> Server::listen(const Options& options, Handler& handler) {
  auto listener = std::make_unique<Listener>(handler, options);
  if (auto ok = listener->open(options); !ok) return ok.error();
  return std::unique_ptr<Server>(std::move(listener));
}

bool is_loopback(const std::string& host) {
  error_code e;
  const auto address = address_of(host, e);
  return !e && address.is_loopback();
}

}  // namespace gimbal::http
