#include "wire/packed_top.h"

#include "base/varint.h"
#include "wire/byte_writer.h"

namespace skep::packed {

void AppendTopQuestion(std::string& to, const TopQuestion& question) {
  AppendVarint(to, question.links_max);
  to.append(question.from);
}

bool ReadTopQuestion(std::string_view payload, TopQuestion* question) {
  if (!TakeVarint(payload, &question->links_max)) return false;
  question->from = payload;
  return true;
}

void AppendTop(std::string& to, const LeafLinks& page) {
  AppendVarint(to, page.links.size());
  for (const LeafLink& link : page.links) {
    AppendBytes(to, link.lower);
    to.append(reinterpret_cast<const char*>(&link.hint.bits), sizeof(link.hint.bits));
    AppendVarint(to, link.hits);
  }
  to.append(page.next);
}

bool ReadTop(std::string_view payload, LeafLinks* page) {
  uint64_t count = 0;
  if (!TakeVarint(payload, &count) || count == 0 || count > kTopLinksMax) return false;
  page->links.reserve(count);
  for (uint64_t i = 0; i < count; ++i) {
    LeafLink& link = page->links.emplace_back();
    if (!TakeBytes(payload, &link.lower) || !TakeFixed(payload, &link.hint.bits) ||
        !TakeVarint(payload, &link.hits)) {
      return false;
    }
    if (i > 0 && link.lower <= page->links[i - 1].lower) return false;
  }
  page->next = payload;
  return page->next.empty() || page->next > page->links.back().lower;
}

}  // namespace skep::packed
