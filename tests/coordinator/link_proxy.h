// link_proxy.h: passes bytes between the clients and a server, or swallows them, one way or both.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "base/network.h"

namespace skep {

// Thread safety: any thread may call it; a thread of its own does the work.
class LinkProxy {
 public:
  explicit LinkProxy(const Address& server);
  ~LinkProxy();
  LinkProxy(const LinkProxy&) = delete;
  LinkProxy& operator=(const LinkProxy&) = delete;

  Address address() const { return listener_->address(); }
  // What comes from now on passes in these ways. To open both again cuts the connections, since
  // they miss what was swallowed.
  void Set(bool to_server, bool to_client);
  // Ends all connections and, until the next Set, those that come, at once.
  void Refuse();

 private:
  struct Connection {
    std::unique_ptr<Stream> client;
    std::unique_ptr<Stream> server;
    bool is_over = false;
  };

  void Turn();
  void Accept();
  void Move(Connection& connection, Stream& from, Stream& to, bool passes);
  void Remove(Connection& connection);

  const Address server_;
  std::unique_ptr<Listener> listener_;
  std::unique_ptr<Poller> poller_ = SocketNetwork().NewPoller();
  Mutex mutex_;
  bool to_server_ SKEP_GUARDED_BY(mutex_) = true;
  bool to_client_ SKEP_GUARDED_BY(mutex_) = true;
  bool is_refusing_ SKEP_GUARDED_BY(mutex_) = false;
  bool is_stopping_ SKEP_GUARDED_BY(mutex_) = false;
  std::vector<std::unique_ptr<Connection>> connections_ SKEP_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace skep
