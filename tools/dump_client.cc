#include "tools/dump_client.h"

#include <fmt/format.h>

#include <utility>

#include "base/check.h"

namespace skep {

Result<DumpClient> DumpClient::Connect(const DumpServer& server, std::string* problem) {
  auto connection = bench::TcpConnection::Connect(server.host, server.port);
  if (!connection) {
    *problem = fmt::format("{}:{}: {}", server.host, server.port, connection.error().ToString());
    return Fail(connection.error());
  }
  DumpClient client{bench::RespPipeline(std::move(*connection))};
  if (server.password.empty()) return client;
  const auto reply = client.Call({"AUTH", server.password});
  if (reply && !reply->is_error()) return client;
  const Status status = reply ? Status(Code::kInvalidArgument, "AUTH") : reply.error();
  *problem =
      fmt::format("{}:{}: {}", server.host, server.port, reply ? reply->text : status.ToString());
  return Fail(status);
}

void DumpClient::Send(std::span<const std::string_view> args) {
  AppendCommand(pipeline_.out(), args);
}

Result<RespReply> DumpClient::Receive() {
  const auto bytes = pipeline_.NextReply();
  if (!bytes) return Fail(bytes.error());
  RespReplyParser parser;
  RespReply reply;
  SKEP_CHECK(parser.Next(*bytes, reply) == RespReplyParser::Event::kReply);
  return reply;
}

}  // namespace skep
