#include "durable/disk_reserve.h"

namespace skep::durable {

bool DiskReserve::Hold() {
  if (is_held_) return true;
  const auto file = files_.Open(path_, FileSystem::Mode::kReadWrite);
  if (!file) return false;
  if (!(*file)->Allocate(bytes_).ok()) {
    static_cast<void>(files_.Remove(path_));  // a part of the space is of no use here
    return false;
  }
  is_held_ = true;
  return true;
}

bool DiskReserve::IsThere() { return files_.Open(path_, FileSystem::Mode::kRead).has_value(); }

void DiskReserve::LetGo() {
  is_held_ = false;
  // If the removal fails the space is not lost: the next Hold() takes the file as it is.
  static_cast<void>(files_.Remove(path_));
}

}  // namespace skep::durable
