// Tests that the committed inputs of the layouts' fuzzers are sound.

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "btree/heads/head_layout_search.h"
#include "btree/paper/paper_layout.h"

namespace skep::btree {
namespace {

// Goal: fuzzing begins with sound nodes, also after a change of the layout.
// Method: the node in each input, as its fuzzer reads it, is checked.
template <class Layout>
void ExpectSoundNodes(const std::string& folder, size_t bytes_before) {
  int nodes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(SKEP_CORPUS "/" + folder)) {
    std::ifstream file(entry.path(), std::ios::binary);
    const std::vector<char> input(std::istreambuf_iterator<char>(file), {});
    ASSERT_GT(input.size(), bytes_before + Layout::kFrontBytes);
    std::vector<std::byte> buffer(input.size() - bytes_before);
    std::memcpy(buffer.data(), input.data() + bytes_before, buffer.size());
    NodeHeader* const node = NodeIn(buffer.data(), Layout::kFrontBytes);
    node->version.store(1);
    uint32_t used = static_cast<uint32_t>(buffer.size()) - Layout::kFrontBytes;
    if (bytes_before == 2) used |= uint32_t{static_cast<unsigned char>(input[1])} << 16;
    const Codec codec = {.geometry = {.node_bytes = 2048u << (input[0] & 3)}};
    EXPECT_STREQ(Layout::Check(codec, node, used), nullptr) << entry.path();
    ++nodes;
  }
  EXPECT_GE(nodes, 10);
}

TEST(LayoutCorpus, HasSoundNodes) {
  ExpectSoundNodes<HeadLayout>("head_layout", 2);
  ExpectSoundNodes<PaperLayout>("paper_layout", 1);
}

}  // namespace
}  // namespace skep::btree
