#include "zookeeper/zookeeper_coordinator.h"

#include <errno.h>
#include <zookeeper/zookeeper.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"

namespace skep {
namespace {

using Kind = CoordinatorRequest::Kind;
using Outcome = CoordinatorOutcome;

constexpr int kAnyVersion = -1;

Outcome OutcomeOf(int code) {
  switch (code) {
    case ZOK:
      return Outcome::kDone;
    case ZNONODE:
      return Outcome::kAbsent;
    case ZNODEEXISTS:
      return Outcome::kExists;
    case ZBADVERSION:
      return Outcome::kStale;
    case ZNOTEMPTY:
      return Outcome::kNotEmpty;
    case ZNOCHILDRENFOREPHEMERALS:
    case ZBADARGUMENTS:
    case ZINVALIDACL:
    case ZNOAUTH:
    case ZUNIMPLEMENTED:
      return Outcome::kRefused;
    default:  // the connection or the session is lost, or nobody knows what
      return Outcome::kUnknown;
  }
}

// Whether a majority has agreed on this answer to a request that it answers.
bool IsAgreedOn(Outcome outcome) {
  return outcome == Outcome::kDone || outcome == Outcome::kAbsent || outcome == Outcome::kExists ||
         outcome == Outcome::kStale || outcome == Outcome::kNotEmpty;
}

int ModeOf(CoordinatorNode node) {
  switch (node) {
    case CoordinatorNode::kPersistent:
      return ZOO_PERSISTENT;
    case CoordinatorNode::kEphemeral:
      return ZOO_EPHEMERAL;
    case CoordinatorNode::kEphemeralSequential:
      return ZOO_EPHEMERAL_SEQUENTIAL;
  }
  return ZOO_PERSISTENT;
}

class Session final : public CoordinatorSession {
 public:
  explicit Session(std::function<void()> wake) : CoordinatorSession(std::move(wake)) {}
  // The library's threads have ended when this returns; it has completed or dropped everything.
  ~Session() override {
    if (handle_ != nullptr) zookeeper_close(handle_);
  }

  // False: errno says why. Called once.
  bool Connect(const std::string& servers, uint32_t timeout_ms, void (*log)(const char* line)) {
    handle_ = zookeeper_init2(servers.c_str(), &Session::OnState, static_cast<int>(timeout_ms),
                              nullptr, this, 0, log);
    return handle_ != nullptr;
  }

  uint64_t LastContactNs() const override { return last_contact_ns_.load(); }
  uint64_t id() const override { return id_.load(); }
  uint32_t timeout_ms() const override { return timeout_ms_.load(); }

 private:
  // A request that the library has, or a watch that may fire: what it gives back with its
  // callbacks.
  struct Asked {
    Session* session;
    CoordinatorRequest request;
    uint64_t sent_ns = 0;
    Asked* watch = nullptr;        // of a read that leaves one
    zoo_op_result_t checked = {};  // of a Confirm
  };

  void Send(CoordinatorRequest request) override;
  std::vector<CoordinatorEvent> Receive() override;

  bool IsConnected();
  int Submit(Asked& asked);

  Asked* Keep(Asked asked);
  void Drop(const Asked* asked);
  void Push(CoordinatorEvent event);
  void Complete(const Asked& asked, int code, CoordinatorEvent answer);
  void FollowState(zhandle_t* handle, int state);

  // The callbacks, on the library's threads.
  static void OnState(zhandle_t* handle, int type, int state, const char* path, void* context);
  static void OnWatch(zhandle_t* handle, int type, int state, const char* path, void* context);
  static void OnCreated(int code, const char* path, const void* context);
  static void OnGot(int code, const char* bytes, int size, const Stat* stat, const void* context);
  static void OnSet(int code, const Stat* stat, const void* context);
  static void OnChildren(int code, const String_vector* names, const void* context);
  static void OnDone(int code, const void* context);

  static const Asked& Of(const void* context) { return *static_cast<const Asked*>(context); }

  zhandle_t* handle_ = nullptr;
  std::atomic<uint64_t> last_contact_ns_{0};
  std::atomic<uint64_t> id_{0};
  std::atomic<uint32_t> timeout_ms_{0};
  Mutex mutex_;
  std::map<const Asked*, std::unique_ptr<Asked>> asked_ SKEP_GUARDED_BY(mutex_);
  std::vector<CoordinatorEvent> events_ SKEP_GUARDED_BY(mutex_);
  bool is_connected_ SKEP_GUARDED_BY(mutex_) = false;
};

std::vector<CoordinatorEvent> Session::Receive() {
  MutexLock lock(mutex_);
  return std::exchange(events_, {});
}

void Session::Push(CoordinatorEvent event) {
  {
    MutexLock lock(mutex_);
    events_.push_back(std::move(event));
  }
  Wake();
}

Session::Asked* Session::Keep(Asked asked) {
  auto kept = std::make_unique<Asked>(std::move(asked));
  Asked* const place = kept.get();
  MutexLock lock(mutex_);
  asked_.emplace(place, std::move(kept));
  return place;
}

void Session::Drop(const Asked* asked) {
  MutexLock lock(mutex_);
  asked_.erase(asked);
}

// While it connects the library would keep a request, and fail it with the next attempt. It tells
// of a lost connection before its own state says so, and of a new one after.
bool Session::IsConnected() {
  MutexLock lock(mutex_);
  return is_connected_ && zoo_state(handle_) == ZOO_CONNECTED_STATE;
}

void Session::Send(CoordinatorRequest request) {
  const uint64_t token = request.token;
  if (!IsConnected()) return AnswerUnsent(token, Outcome::kNotSent);
  Asked* const watch = request.watch ? Keep({.session = this, .request = request}) : nullptr;
  Asked* const asked = Keep({.session = this,
                             .request = std::move(request),
                             .sent_ns = SystemClock().MonotonicNs(),
                             .watch = watch});
  const int code = Submit(*asked);
  if (code == ZOK) return;
  Drop(watch);
  Drop(asked);
  AnswerUnsent(token, code == ZBADARGUMENTS ? Outcome::kRefused : Outcome::kNotSent);
}

int Session::Submit(Asked& asked) {
  const CoordinatorRequest& request = asked.request;
  const char* const path = request.path.c_str();
  const int size = static_cast<int>(request.bytes.size());
  switch (request.kind) {
    case Kind::kCreate:
      return zoo_acreate(handle_, path, request.bytes.data(), size, &ZOO_OPEN_ACL_UNSAFE,
                         ModeOf(request.node), &Session::OnCreated, &asked);
    case Kind::kGet:
      return zoo_awget(handle_, path, asked.watch == nullptr ? nullptr : &Session::OnWatch,
                       asked.watch, &Session::OnGot, &asked);
    case Kind::kSet:
      return zoo_aset(handle_, path, request.bytes.data(), size, request.version, &Session::OnSet,
                      &asked);
    case Kind::kDelete:
      return zoo_adelete(handle_, path, request.version, &Session::OnDone, &asked);
    case Kind::kChildren:
      return zoo_awget_children(handle_, path, asked.watch == nullptr ? nullptr : &Session::OnWatch,
                                asked.watch, &Session::OnChildren, &asked);
    case Kind::kConfirm:
      break;
  }
  zoo_op_t check;
  zoo_check_op_init(&check, path, kAnyVersion);
  return zoo_amulti(handle_, 1, &check, &asked.checked, &Session::OnDone, &asked);
}

void Session::Complete(const Asked& asked, int code, CoordinatorEvent answer) {
  answer.token = asked.request.token;
  answer.outcome = OutcomeOf(code);
  if (asked.request.is_confirming() && IsAgreedOn(answer.outcome)) {
    last_contact_ns_.store(std::max(last_contact_ns_.load(), asked.sent_ns));
  }
  if (code != ZOK) Drop(asked.watch);  // the library has no watch of a read that failed
  Drop(&asked);
  Push(std::move(answer));
}

void Session::OnCreated(int code, const char* path, const void* context) {
  CoordinatorEvent answer;
  if (code == ZOK) answer.path = path;
  Of(context).session->Complete(Of(context), code, std::move(answer));
}

void Session::OnGot(int code, const char* bytes, int size, const Stat* stat, const void* context) {
  CoordinatorEvent answer;
  if (code == ZOK) {
    if (size > 0) answer.bytes.assign(bytes, static_cast<size_t>(size));
    answer.version = stat->version;
    answer.owner = static_cast<uint64_t>(stat->ephemeralOwner);
  }
  Of(context).session->Complete(Of(context), code, std::move(answer));
}

void Session::OnSet(int code, const Stat* stat, const void* context) {
  CoordinatorEvent answer;
  if (code == ZOK) answer.version = stat->version;
  Of(context).session->Complete(Of(context), code, std::move(answer));
}

void Session::OnChildren(int code, const String_vector* names, const void* context) {
  CoordinatorEvent answer;
  if (code == ZOK) answer.children.assign(names->data, names->data + names->count);
  std::ranges::sort(answer.children);
  Of(context).session->Complete(Of(context), code, std::move(answer));
}

void Session::OnDone(int code, const void* context) {
  Of(context).session->Complete(Of(context), code, {});
}

// The library also tells every watch of every change of the session's state.
void Session::OnWatch(zhandle_t*, int type, int, const char*, void* context) {
  if (type == ZOO_SESSION_EVENT) return;
  const Asked* const watch = &Of(context);
  Session* const session = watch->session;
  const uint64_t token = watch->request.token;
  session->Drop(watch);
  session->Push({.kind = CoordinatorEvent::Kind::kChanged, .token = token});
}

void Session::OnState(zhandle_t* handle, int type, int state, const char*, void* context) {
  if (type == ZOO_SESSION_EVENT) static_cast<Session*>(context)->FollowState(handle, state);
}

void Session::FollowState(zhandle_t* handle, int state) {
  CoordinatorEvent event = {.at_ns = SystemClock().MonotonicNs()};
  const bool is_connected = state == ZOO_CONNECTED_STATE;
  {
    MutexLock lock(mutex_);
    const bool was_connected = std::exchange(is_connected_, is_connected);
    if (is_connected) {
      event.kind = CoordinatorEvent::Kind::kConnected;
      id_.store(static_cast<uint64_t>(zoo_client_id(handle)->client_id));
      timeout_ms_.store(static_cast<uint32_t>(zoo_recv_timeout(handle)));
    } else if (state == ZOO_EXPIRED_SESSION_STATE || state == ZOO_AUTH_FAILED_STATE) {
      event.kind = CoordinatorEvent::Kind::kExpired;
    } else if (was_connected) {
      event.kind = CoordinatorEvent::Kind::kDisconnected;
    } else {
      return;
    }
  }
  Push(std::move(event));
}

}  // namespace

ZooKeeperCoordinator::ZooKeeperCoordinator(std::string servers, void (*log)(const char* line))
    : servers_(std::move(servers)), log_(log) {
  // Without a reader no line is made: the library makes some of them in a buffer that all threads
  // share.
  constexpr auto kNothing = static_cast<ZooLogLevel>(0);
  zoo_set_debug_level(log == nullptr ? kNothing : ZOO_LOG_LEVEL_INFO);
}

Result<std::unique_ptr<CoordinatorSession>> ZooKeeperCoordinator::Open(
    const CoordinatorSessionOptions& options) {
  constexpr auto kNobody = [](const char*) {};
  if (options.timeout_ms == 0 || servers_.empty()) {
    return Fail(Code::kInvalidArgument, "ZooKeeper needs servers and a time-out");
  }
  auto session = std::make_unique<Session>(options.wake);
  if (!session->Connect(servers_, options.timeout_ms, log_ == nullptr ? kNobody : log_)) {
    const auto error = static_cast<uint64_t>(errno);
    if (error == EINVAL) return Fail(Code::kInvalidArgument, "not the servers of a ZooKeeper");
    return Fail(Code::kIo, "ZooKeeper's servers cannot be resolved", error);
  }
  return session;
}

}  // namespace skep
