// administration.h: what the commands CONFIG, CLIENT, SAVE, INFO, SHUTDOWN and their kin, which
// administrate a server, ask of it. The server implements it; commands about data do not need it
// (command.h).
//
// Thread-safe: the commands of any worker call it.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "durable/persistence.h"
#include "server/client_registry.h"
#include "server/current_options.h"
#include "server/server_statistics.h"

namespace skep {

class Administration {
 public:
  virtual ~Administration() = default;

  // The text of INFO. Without names: all sections that are cheap to make.
  virtual std::string Describe(std::span<const std::string_view> sections) = 0;
  virtual ServerOptions options() const = 0;
  // The counters of all workers since the start, or since they were reset.
  virtual ServerCounts Counts() = 0;
  virtual void ResetCounts() = 0;
  // As CurrentOptions::Set and Rewrite; the new values hold from then on.
  virtual std::string SetOptions(std::span<const OptionChange> changes) = 0;
  virtual std::string RewriteConfigFile() = 0;
  virtual ClientRegistry& clients() = 0;
  // Ends the clients that match. `self` is the client that asks; *ends_self says whether it
  // matches, in which case it ends itself once it has its reply. Returns how many match, `self`
  // included.
  virtual size_t EndClients(const ClientFilter& filter, const ClientInfo& self,
                            bool* ends_self) = 0;
  // Null if the store is only in memory.
  virtual durable::Persistence* persistence() = 0;
  // Asks the server to end: replies that are encoded are sent, long ones in progress are cut,
  // connections closed. Returns at once.
  virtual void Stop() = 0;
};

}  // namespace skep
