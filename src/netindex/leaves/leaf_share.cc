#include "netindex/leaves/leaf_share.h"

#include <utility>

#include "engine/leaf_links.h"
#include "netindex/leaves/share_place.h"
#include "rma/fabrics.h"
#include "skep/options.h"

namespace skep::leaves {
namespace {

// Null: its leaves cannot be shared.
LeafBoard* BoardOf(const Engine& engine, const SharedLeaves& shared) {
  if (shared.board == nullptr || !engine.traits().multi_version) return nullptr;
  auto* const board = reinterpret_cast<LeafBoard*>(shared.board->begin());
  const bool has_heads = board->layout == static_cast<uint32_t>(NodeLayout::kHeads);
  return has_heads ? board : nullptr;
}

// The regions, in their order, by mappings that can only be read.
Result<std::vector<SharedMemory>> MapRegions(const SharedLeaves& shared) {
  std::vector<SharedMemory*> memories = {shared.board, shared.rows};
  memories.insert(memories.end(), shared.regions.begin(), shared.regions.end());
  std::vector<SharedMemory> mapped;
  for (const SharedMemory* const memory : memories) {
    auto descriptor = memory->ReadOnlyDescriptor();
    if (!descriptor) return Fail(descriptor.error());
    auto region = SharedMemory::Map(std::move(*descriptor));
    if (!region) return Fail(region.error());
    mapped.push_back(std::move(*region));
  }
  return mapped;
}

}  // namespace

Result<std::unique_ptr<LeafShare>> LeafShare::Open(std::string_view place, Engine& engine,
                                                   uint64_t instance, std::string* problem) {
  const auto parsed = ParseSharePlace(place);
  *problem = kSharePlaces;
  if (!parsed) return Fail(Code::kInvalidArgument, kSharePlaces);
  const HasLeafLinks* const links = LeafLinksOf(engine);
  const SharedLeaves shared = links != nullptr ? links->Shared() : SharedLeaves();
  LeafBoard* const board = BoardOf(engine, shared);
  if (board == nullptr) {
    *problem = "leaves are shared of a btree with versions and the layout heads";
    return Fail(Code::kNotSupported, "the engine has no leaves that can be shared");
  }
  auto fabric = rma::MakeFabric(parsed->fabric, problem);
  if (!fabric) return Fail(fabric.error());
  board->instance = instance;
  const auto fail = [&](const Status& s) {
    *problem = "cannot share leaves at " + std::string(place) + ": " + s.ToString();
    return Fail(s);
  };
  auto mapped = MapRegions(shared);
  if (!mapped) return fail(mapped.error());
  rma::EndpointOptions options{.listen = parsed->address};
  for (SharedMemory& region : *mapped) options.regions.push_back({.memory = &region});
  auto endpoint = (*fabric)->Open(options);
  if (!endpoint) return fail(endpoint.error());
  return std::unique_ptr<LeafShare>(
      new LeafShare(engine, *board, std::move(*mapped), std::move(*fabric), std::move(*endpoint)));
}

LeafShare::LeafShare(Engine& engine, LeafBoard& board, std::vector<SharedMemory> mapped,
                     std::unique_ptr<rma::Fabric> fabric, std::unique_ptr<rma::Endpoint> endpoint)
    : engine_(engine),
      board_(board),
      mapped_(std::move(mapped)),
      fabric_(std::move(fabric)),
      endpoint_(std::move(endpoint)) {
  engine_.gate().ShowIn(&board_.released);
  // Without a log both are one, and nobody waits for the second.
  if (&engine_.synced_gate() != &engine_.gate()) engine_.synced_gate().ShowIn(&board_.synced);
  NoteOptions();
  thread_ = std::thread([this] { Serve(); });
}

LeafShare::~LeafShare() {
  stops_.store(true);
  endpoint_->Wake();
  thread_.join();
}

std::string LeafShare::place() const {
  return std::string(endpoint_->capabilities().name) + ":" + endpoint_->address();
}

void LeafShare::Serve() {
  while (!stops_.load()) {
    for (const rma::Event& event : endpoint_->Poll(-1)) {
      if (event.kind == rma::Event::Kind::kJoined) peers_.fetch_add(1);
      if (event.kind == rma::Event::Kind::kLeft) peers_.fetch_sub(1);
      // Nobody has anything to call for.
      if (event.kind == rma::Event::Kind::kRequest) endpoint_->Disconnect(event.peer);
    }
  }
}

}  // namespace skep::leaves
