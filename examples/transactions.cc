// transactions.cc: keys that expire, a transaction that watches the keys it has read, and a batch
// with conditions. transactions.expected is what it prints.

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "skep/store.h"

namespace {

// An example ends at the first failure; a program would look at status.code().
void Must(skep::Status status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  std::exit(EXIT_FAILURE);
}

template <typename T>
T Must(skep::Result<T> result) {
  if (!result) Must(result.error());
  return std::move(*result);
}

// A session that expires, and one that is prolonged in time.
void Expiry(skep::Store& store) {
  using namespace std::chrono_literals;
  Must(store.PutUntil("session:1", "Ada", skep::DeadlineAfter(10ms)));
  Must(store.PutUntil("session:2", "Grace", skep::DeadlineAfter(1min)));
  const bool prolonged = Must(store.Expire("session:2", skep::DeadlineAfter(1h)));
  while (Must(store.Get("session:1"))) std::this_thread::sleep_for(1ms);
  std::printf("session 1 is over; session 2, prolonged %d, is that of %s\n", prolonged,
              Must(store.Get("session:2"))->c_str());
  while (store.Maintain()) {  // frees the expired keys
  }
}

// Takes an amount from an account if no other client has changed it meanwhile: watch, read, write
// if unchanged.
bool Withdraw(skep::Store& store, int amount, void (*meanwhile)(skep::Store&)) {
  const skep::Watch watch = Must(store.WatchKey("balance"));
  const int balance = std::stoi(Must(store.Get("balance")).value_or("0"));
  if (balance < amount) return false;
  meanwhile(store);
  const std::string left = std::to_string(balance - amount);
  skep::Batch batch(skep::Batch::Kind::kAtomic);
  batch.RequireUnchanged("balance", watch.id());
  batch.Put("balance", left);
  Must(store.Execute(batch));
  return batch.applied();
}

void Transaction(skep::Store& store) {
  Must(store.Put("balance", "100"));
  const auto nothing = [](skep::Store&) {};
  const auto deposit = [](skep::Store& other) { Must(other.Put("balance", "170")); };
  const bool first = Withdraw(store, 30, nothing);
  const bool second = Withdraw(store, 30, deposit);  // a deposit came first: read again
  const bool again = Withdraw(store, 30, nothing);
  std::printf("withdrawn %d, %d, %d; the balance is %s\n", first, second, again,
              Must(store.Get("balance"))->c_str());
}

// A batch with conditions, in one call: a seat is taken only if it is free and the show is not
// cancelled.
void ConditionalBatch(skep::Store& store) {
  Must(store.Put("show", "on"));
  for (const char* guest : {"Ada", "Grace"}) {
    skep::Batch book(skep::Batch::Kind::kAtomic);
    const uint32_t is_on = book.RequireValue("show", "on");
    const uint32_t is_free = book.RequireAbsent("seat:7");
    book.Put("seat:7", guest);
    book.Apply("sold", skep::functions::kAddDecimal, "1");
    Must(store.Execute(book));
    const bool taken = book.outcome(is_free).verdict == skep::Verdict::kExists;
    const bool cancelled = book.outcome(is_on).verdict == skep::Verdict::kMismatch;
    std::printf("%s: %s\n", guest,
                book.applied() ? "booked"
                : taken        ? "the seat is taken"
                : cancelled    ? "there is no show"
                               : "failed");
  }
}

}  // namespace

int main() {
  const auto store = Must(skep::Store::Open({}));
  Expiry(*store);
  Transaction(*store);
  ConditionalBatch(*store);
}
