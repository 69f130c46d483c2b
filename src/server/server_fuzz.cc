// Property: whatever bytes a connection sends, and however they are split, the server answers with
// whole replies, at most one a command (RESP) or message (the packed protocol, if the stream begins
// like it), and serves the next connection. A datagram has at most one reply, which is whole too.
//
// Input: two bytes that choose, then the stream.
//   byte 0  bit 0: structured (below); 1: a password is set; 2: a memory limit; 3: HELLO 3 first;
//           4: half-close at the end; 5: log in first; 6: the input is one datagram, not a stream
//   byte 1  how the stream is split; 0: not at all
//
// Structured: the stream is lines; each is one command whose words, between spaces, become its
// arguments. So the dictionary (server_fuzz.dict) reaches every option of every command without
// the fuzzer's having to get lengths right.
//
// One server lives through many inputs and is emptied before each: making it costs more than a run.

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "server/server.h"
#include "sim/simulation.h"
#include "wire/packed_reply.h"
#include "wire/resp_decoder.h"
#include "wire/resp_reply.h"

namespace skep {
namespace {

using std::chrono_literals::operator""s;

constexpr const char* kAddress = "127.0.0.1:6379";
constexpr int kInputsMax = 500;  // of one server
constexpr size_t kStreamBytesMax = 4096;
constexpr size_t kPiecesMax = 64;  // pieces of a stream, about

ServerOptions Options() {
  ServerOptions options;
  options.workers = 1;
  options.logfile = "log";
  options.databases = 4;
  options.udp = true;
  return options;
}

// A connection that sends a whole stream and reads all replies.
class Connection {
 public:
  explicit Connection(Simulation& sim) : stream_(std::move(*sim.network().Connect(kAddress, 0))) {}

  // Sends a piece; false if the server takes no more.
  bool Send(std::string_view bytes) {
    const ssize_t taken = stream_->Write(bytes);
    return taken == static_cast<ssize_t>(bytes.size());
  }
  void FinishSending() { stream_->FinishSending(); }

  // Whether anything arrived.
  bool Receive() {
    char buffer[4096];
    const ssize_t got = closed_ ? -EAGAIN : stream_->Read(buffer, sizeof buffer);
    if (got == -EAGAIN) return false;
    if (got <= 0) closed_ = true;
    if (got > 0) received_.append(buffer, static_cast<size_t>(got));
    return true;
  }
  const std::string& received() const { return received_; }
  bool closed() const { return closed_; }

 private:
  std::unique_ptr<Stream> stream_;
  std::string received_;
  bool closed_ = false;
};

// A client that sends one datagram.
class DatagramClient {
 public:
  explicit DatagramClient(Simulation& sim)
      : socket_(std::move(*sim.network().ConnectDatagrams(kAddress))) {}

  void Send(std::string_view bytes) {
    const Datagram one{.peer = {}, .bytes = bytes};
    socket_->Send({&one, 1});
  }
  bool Receive() {
    const auto come = socket_->Receive();
    for (const Datagram& reply : come) replies_.emplace_back(reply.bytes);
    return !come.empty();
  }
  const std::vector<std::string>& replies() const { return replies_; }

 private:
  std::unique_ptr<DatagramSocket> socket_;
  std::vector<std::string> replies_;
};

class World {
 public:
  World() : sim_(1, Quick()) {
    const Environment environment{sim_.clock(), sim_.random(), sim_.disk(), sim_.network()};
    server_ = std::make_unique<Server>(Options(), environment);
    SKEP_CHECK(server_->Start().ok());
  }

  Simulation& sim() { return sim_; }

  // Puts the server back to its first state, so that inputs do not depend on each other.
  void Reset(bool password, bool memory_limit) {
    for (uint32_t i = 0; i < server_->keyspaces().count(); ++i) {
      if (server_->keyspaces().if_used(i) == nullptr) continue;
      Batch batch;
      batch.DeleteRange(Range::All());
      server_->keyspaces().at(i).Execute(batch);
    }
    std::vector<std::pair<std::string, std::string>> values;
    const ServerOptions first = Options();
    for (const OptionInfo& option : AllOptions()) {
      if (option.mutable_at_run_time) values.emplace_back(option.name, option.get(first));
    }
    values.emplace_back("requirepass", password ? "sesame" : "");
    values.emplace_back("maxmemory", memory_limit ? "200000" : "0");
    std::vector<std::pair<std::string_view, std::string_view>> changes(values.begin(),
                                                                       values.end());
    SKEP_CHECK(server_->SetOptions(changes).empty());
  }

  bool stopping() const { return server_->stopping(); }

  // Turns the worker until nothing more happens.
  void Settle(auto& connection) {
    constexpr int kIdleMax = 2;
    for (int idle = 0; idle < kIdleMax;) {
      Worker& worker = server_->worker(0);
      if (server_->stopping() && !worker.drained()) worker.Drain();
      const bool turned = !worker.drained() && worker.Turn(0);
      const bool received = connection.Receive();
      idle = turned || received ? 0 : idle + 1;
      sim_.clock().Advance(10'000);  // sent bytes arrive
      SKEP_CHECK(++turns_ < kTurnsMax);
    }
    turns_ = 0;
  }

 private:
  static constexpr uint64_t kTurnsMax = 200'000;
  static SimulationOptions Quick() {
    SimulationOptions options;
    options.network = {.buffer_bytes = 1 << 20,
                       .delay_ns_min = 0,
                       .delay_ns_max = 0,
                       .segment_bytes_max = 1 << 20,
                       .short_writes_ppm = 0};
    return options;
  }

  Simulation sim_;
  std::unique_ptr<Server> server_;
  uint64_t turns_ = 0;
};

// Makes a command of each line of words.
std::string CommandsOf(std::string_view text) {
  std::string stream;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    std::vector<std::string_view> words;
    for (size_t at = 0; at <= line.size();) {
      const size_t end = std::min(line.find(' ', at), line.size());
      words.push_back(line.substr(at, end - at));
      at = end + 1;
    }
    AppendCommand(stream, words);
  }
  return stream;
}

// How many commands the bytes hold at most; an error of the protocol is one more reply.
size_t CommandsIn(std::string_view stream) {
  RespDecoder decoder;
  std::vector<std::string_view> args;
  size_t count = 0;
  while (!stream.empty()) {
    const auto event = decoder.Next(stream, {}, args);
    if (event == RespDecoder::Event::kNeedMore) return count;
    if (event == RespDecoder::Event::kError) return count + 1;
    count += !args.empty();
    stream.remove_prefix(decoder.consumed());
  }
  return count;
}

// The number of replies in the bytes; stops the fuzzer if they are malformed.
size_t RepliesIn(std::string_view bytes, bool may_be_cut) {
  RespReplyParser parser;
  RespReply reply;
  size_t count = 0;
  while (!bytes.empty()) {
    const auto event = parser.Next(bytes, reply);
    SKEP_CHECK(event != RespReplyParser::Event::kError);
    if (event == RespReplyParser::Event::kNeedMore) {
      SKEP_CHECK(may_be_cut);
      return count;
    }
    bytes.remove_prefix(parser.consumed());
    ++count;
  }
  return count;
}

// RepliesIn for the packed protocol, behind the hello.
size_t PackedRepliesIn(std::string_view bytes, bool may_be_cut) {
  size_t count = 0;
  while (!bytes.empty()) {
    const bool has_header = bytes.size() >= sizeof(packed::Header);
    const auto header = has_header ? packed::Read<packed::Header>(bytes) : packed::Header{};
    if (!has_header || bytes.size() - sizeof(header) < header.payload_bytes) {
      SKEP_CHECK(may_be_cut);
      return count;
    }
    SKEP_CHECK(packed::IsKind(header.kind));
    std::string_view payload = bytes.substr(sizeof(header), header.payload_bytes);
    Status status;
    if ((header.flags & packed::kFailed) != 0) SKEP_CHECK(packed::TakeStatus(payload, &status));
    bytes.remove_prefix(sizeof(header) + header.payload_bytes);
    ++count;
  }
  return count;
}

// The number of messages that begin in the bytes.
size_t MessagesIn(std::string_view stream) {
  size_t count = 0;
  stream.remove_prefix(sizeof(packed::ClientHello));
  for (; stream.size() >= sizeof(packed::Header); ++count) {
    const auto header = packed::Read<packed::Header>(stream);
    stream.remove_prefix(std::min(stream.size(), sizeof(header) + size_t{header.payload_bytes}));
  }
  return count;
}

void SendSplit(World& world, Connection& connection, std::string_view stream, uint8_t split) {
  SeededRandom random(split);
  while (!stream.empty()) {
    const size_t least = stream.size() / kPiecesMax;
    const size_t size = split == 0 ? stream.size() : 1 + std::max(least, random.Below(split));
    if (!connection.Send(stream.substr(0, size))) return;
    stream.remove_prefix(std::min(size, stream.size()));
    if (random.Chance(1, 4)) world.Settle(connection);
  }
}

void SendDatagram(World& world, std::string_view bytes) {
  DatagramClient client(world.sim());
  client.Send(bytes);
  world.Settle(client);
  SKEP_CHECK(client.replies().size() <= 1);
  for (const std::string_view reply : client.replies()) {
    SKEP_CHECK(packed::IsHello(reply) && reply.size() >= sizeof(packed::DatagramHead));
    SKEP_CHECK(PackedRepliesIn(reply.substr(sizeof(packed::DatagramHead)), false) <= 1);
  }
}

void CheckAnswersPing(World& world) {
  Connection fresh(world.sim());
  fresh.Send("*2\r\n$4\r\nAUTH\r\n$6\r\nsesame\r\n*1\r\n$4\r\nPING\r\n");
  world.Settle(fresh);
  // Whatever the password is now, the last reply is PONG or a refusal for want of it.
  SKEP_CHECK(fresh.received().ends_with("+PONG\r\n") ||
             fresh.received().ends_with("-NOAUTH Authentication required.\r\n"));
}

void Run(const uint8_t* data, size_t size) {
  static std::unique_ptr<World> world;
  static int inputs = 0;
  if (world == nullptr || world->stopping() || ++inputs > kInputsMax) {
    world.reset();
    world = std::make_unique<World>();
    inputs = 0;
  }
  const auto has = [&](int bit) { return (data[0] >> bit & 1) != 0; };
  world->Reset(has(1), has(2));
  std::string stream;
  if (has(5)) stream += "*2\r\n$4\r\nAUTH\r\n$6\r\nsesame\r\n";
  if (has(3)) stream += "*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n";
  const std::string_view rest(reinterpret_cast<const char*>(data) + 2, size - 2);
  stream += has(0) ? CommandsOf(rest) : std::string(rest);

  if (has(6)) {
    SendDatagram(*world, rest);
  } else {
    Connection connection(world->sim());
    SendSplit(*world, connection, stream, data[1]);
    if (has(4)) connection.FinishSending();
    world->Settle(connection);
    const std::string& received = connection.received();
    if (packed::IsHello(stream) && stream.size() >= sizeof(packed::ClientHello)) {
      SKEP_CHECK(packed::IsHello(received));
      const std::string_view replies =
          std::string_view(received).substr(sizeof(packed::ServerHello));
      SKEP_CHECK(PackedRepliesIn(replies, connection.closed()) <= MessagesIn(stream));
    } else {
      SKEP_CHECK(RepliesIn(received, connection.closed()) <= CommandsIn(stream));
    }
  }
  if (!world->stopping()) CheckAnswersPing(*world);
}

}  // namespace
}  // namespace skep

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2 || size > skep::kStreamBytesMax) return 0;
  skep::Run(data, size);
  return 0;
}
