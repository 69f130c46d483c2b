// administration.h: what the commands that administrate a server ask of it: CONFIG, CLIENT, SAVE,
// INFO, SHUTDOWN and their kin. The server implements it; commands about data have no use for it
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

namespace skep {

class Administration {
 public:
  virtual ~Administration() = default;

  // As INFO replies. No names: all sections that are cheap to make.
  virtual std::string Describe(std::span<const std::string_view> sections) = 0;
  virtual ServerOptions options() const = 0;
  // As CurrentOptions::Set and Rewrite; what is set holds from then on.
  virtual std::string SetOptions(std::span<const OptionChange> changes) = 0;
  virtual std::string RewriteConfigFile() = 0;
  virtual ClientRegistry& clients() = 0;
  // Ends the clients that match; `self` is the one who asks. *ends_self says whether it is one of
  // them: it ends itself once it has its reply. Returns how many they are, with it.
  virtual size_t EndClients(const ClientFilter& filter, const ClientInfo& self,
                            bool* ends_self) = 0;
  // Null: in memory only.
  virtual durable::Persistence* persistence() = 0;
  // Asks for the end: replies that are encoded are sent, long ones in progress are cut, connections
  // closed. Returns at once.
  virtual void Stop() = 0;
};

}  // namespace skep
