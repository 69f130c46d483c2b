// geo_args.h: what the commands about places have in common: their words and replies.
#pragma once

#include <span>
#include <string_view>

#include "skep/scratch.h"
#include "types/geo.h"
#include "wire/resp_writer.h"

namespace skep {

inline constexpr std::string_view kNoUnit =
    "ERR unsupported unit provided. please use M, KM, FT, MI";

// Reads a longitude and a latitude. Returns an error text, which may live in the scratch, if they
// are wrong, else an empty one.
std::string_view ParsePlace(std::span<const std::string_view> words, Scratch& scratch,
                            types::Place& place);

// A distance with four digits behind the point; a longitude and a latitude, as they are.
void ReplyDistance(RespWriter reply, double distance);
void ReplyPlace(RespWriter reply, const types::Place& place);

}  // namespace skep
