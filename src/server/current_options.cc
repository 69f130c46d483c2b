#include "server/current_options.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/mutex.h"
#include "server/config_file.h"
#include "server/open_files.h"

namespace skep {
namespace {

// Writes another file, which takes the name when it is whole and on the disk.
Status ReplaceFile(FileSystem& files, const std::string& path, std::string_view text) {
  const std::string temporary = path + ".tmp";
  auto file = files.Open(temporary, FileSystem::Mode::kCreate);
  Status s = file ? (*file)->Append(text) : file.error();
  if (s.ok()) s = (*file)->Sync();
  if (s.ok()) s = files.Rename(temporary, path);
  if (!s.ok()) {
    static_cast<void>(files.Remove(temporary));
    return s;
  }
  const size_t slash = path.rfind('/');
  return files.SyncDirectory(slash == std::string::npos ? "." : path.substr(0, slash + 1));
}

// Sets one option of `changed`. Returns why it cannot be set; empty if it was set.
std::string Change(const ServerOptions& now, const OptionChange& change, ServerOptions& changed) {
  const Status s = SetOption(changed, change.first, change.second);
  if (!s.ok()) return s.what();
  if (changed.maxclients > std::max(now.maxclients, ClientsPossible(changed))) {
    return fmt::format(
        "The operating system is not able to handle the specified number of clients, try with {}",
        ClientsPossible(changed));
  }
  std::string why;
  return CheckOptions(changed, &why).ok() ? std::string() : why;
}

}  // namespace

ServerOptions CurrentOptions::Get() const {
  const MutexLock lock(mutex_);
  return options_;
}

std::string CurrentOptions::Set(std::span<const OptionChange> changes,
                                const std::function<void(const ServerOptions&)>& apply) {
  const MutexLock lock(mutex_);
  ServerOptions changed = options_;
  for (const OptionChange& change : changes) {
    if (const std::string why = Change(options_, change, changed); !why.empty()) {
      return fmt::format("CONFIG SET failed (possibly related to argument '{}') - {}", change.first,
                         why);
    }
  }
  options_ = changed;
  apply(changed);
  version_.fetch_add(1, std::memory_order_release);
  return {};
}

std::string CurrentOptions::Rewrite(FileSystem& files) {
  const MutexLock lock(file_mutex_);
  // The options are read after the lock was taken, so that the thread that writes last writes the
  // newest ones.
  const ServerOptions options = Get();
  if (options.config_file.empty()) return "The server is running without a config file";
  const auto refuse = [](const Status& s) {
    return fmt::format("Rewriting config file: {}", s.ToString());
  };
  const auto text = files.ReadAll(options.config_file);
  if (!text) return refuse(text.error());
  const auto rewritten = RewriteConfig(*text, options);
  if (!rewritten) return refuse(rewritten.error());
  const Status s = ReplaceFile(files, options.config_file, *rewritten);
  return s.ok() ? std::string() : refuse(s);
}

}  // namespace skep
