// check_report.h: the reports of skep-check: as text for people, and as JSON.
#pragma once

#include <cstdint>
#include <string>

#include "durable/directory_check.h"
#include "durable/persistence.h"
#include "durable/rehearsal.h"

namespace skep {

// Return lines, each with its end. `now_ms`: for the age of snapshots.
std::string TextOf(const durable::DirectoryCheck& check, uint64_t now_ms);
std::string TextOf(const durable::SnapshotCheck& check, uint64_t now_ms);
std::string TextOf(const durable::LogCheck& check);
std::string TextOf(const durable::RdbCheck& check);
// Tells what a repair of a directory has done.
std::string TextOf(const durable::RecoveryReport& report);
// Tells what a start would recover.
std::string TextOf(const durable::Rehearsal& rehearsal);

// Return one JSON object, on one line.
std::string JsonOf(const durable::DirectoryCheck& check);
std::string JsonOf(const durable::SnapshotCheck& check);
std::string JsonOf(const durable::LogCheck& check);
std::string JsonOf(const durable::RdbCheck& check);
std::string JsonOf(const durable::RecoveryReport& report);
std::string JsonOf(const durable::Rehearsal& rehearsal);
std::string JsonOfFailedStart(const std::string& problem);

// Return one line.
std::string LineOf(uint64_t keyspace, const durable::SnapshotItem& item);
std::string LineOf(const durable::LoggedChange& change);

}  // namespace skep
