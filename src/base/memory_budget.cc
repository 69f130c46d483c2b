#include "base/memory_budget.h"

#include <malloc.h>

#include <new>

namespace skep {

void* BudgetedMemory::do_allocate(size_t bytes, size_t alignment) {
  void* at = alignment > __STDCPP_DEFAULT_NEW_ALIGNMENT__
                 ? ::operator new(bytes, std::align_val_t{alignment})
                 : ::operator new(bytes);
  // A block has a header of malloc's own, of one word.
  const size_t charged = malloc_usable_size(at) + sizeof(void*);
  used_.fetch_add(charged, std::memory_order_relaxed);
  budget_.Charge(charged);
  return at;
}

void BudgetedMemory::do_deallocate(void* at, size_t bytes, size_t alignment) {
  const size_t charged = malloc_usable_size(at) + sizeof(void*);
  used_.fetch_sub(charged, std::memory_order_relaxed);
  budget_.Release(charged);
  if (alignment > __STDCPP_DEFAULT_NEW_ALIGNMENT__) {
    ::operator delete(at, bytes, std::align_val_t{alignment});
  } else {
    ::operator delete(at, bytes);
  }
}

}  // namespace skep
