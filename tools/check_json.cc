#include <nlohmann/json.hpp>

#include "pool/index_log.h"
#include "tools/check_report.h"

namespace skep {
namespace {

using durable::Damage;
using durable::KeyspaceInLog;
using durable::SegmentCheck;
using Json = nlohmann::ordered_json;

Json ToJson(const std::vector<Damage>& damages) {
  Json list = Json::array();
  for (const Damage& damage : damages) {
    list.push_back({{"file", damage.file},
                    {"offset", damage.offset},
                    {"bytes", damage.bytes},
                    {"what", damage.what}});
  }
  return list;
}

Json ToJsonOfTornEnd(const durable::RecoveryReport& report) {
  if (report.torn_file.empty()) return nullptr;
  return {{"file", report.torn_file}, {"offset", report.torn_offset}};
}

Json ToJson(const std::map<uint32_t, KeyspaceInLog>& keyspaces) {
  Json list = Json::array();
  for (const auto& [index, keyspace] : keyspaces) {
    list.push_back({{"keyspace", index},
                    {"changes", keyspace.changes},
                    {"highest_version", keyspace.highest},
                    {"complete_version", keyspace.complete}});
  }
  return list;
}

Json ToJson(const SegmentCheck& segment) {
  Json changes = Json::object();
  for (size_t kind = 0; kind < SegmentCheck::kKinds; ++kind) {
    if (segment.changes[kind] == 0) continue;
    const auto name = NameOf(static_cast<durable::LogChange::Kind>(kind));
    changes[std::string(name)] = segment.changes[kind];
  }
  Json of_pool = Json::object();
  for (const auto& [kind, count] : segment.pool) {
    of_pool[std::string(pool::NameOf(static_cast<pool::IndexLog::Kind>(kind)))] = count;
  }
  return {{"file", segment.file},
          {"begin", segment.begin},
          {"end", segment.end},
          {"file_bytes", segment.file_bytes},
          {"records", segment.records},
          {"change_records", segment.batches},
          {"progress_records", segment.progresses},
          {"start_records", segment.starts},
          {"end_records", segment.ends},
          {"changes", changes},
          {"pool_records", of_pool},
          {"keyspaces", ToJson(segment.keyspaces)},
          {"synced_position", segment.synced_position}};
}

Json ToJson(const durable::LogCheck& log) {
  Json segments = Json::array();
  for (const SegmentCheck& segment : log.segments) segments.push_back(ToJson(segment));
  Json json = {{"segments", segments},
               {"keyspaces", ToJson(log.keyspaces)},
               {"end", log.end},
               {"synced_position", log.synced_position},
               {"closed", log.is_ended},
               {"incomplete_changes", log.incomplete},
               {"ends_early", log.ends_early},
               {"torn", nullptr},
               {"superseded", log.superseded}};
  if (!log.torn_file.empty()) {
    json["torn"] = {{"file", log.torn_file}, {"offset", log.torn_offset}};
  }
  return json;
}

Json ToJson(const durable::SnapshotCheck& check) {
  Json json = {{"file", check.file},
               {"file_bytes", check.file_bytes},
               {"created_ms", nullptr},
               {"blocks", check.blocks},
               {"items", check.items},
               {"keyspaces", nullptr},
               {"damage", ToJson(check.damage)}};
  if (check.created_ms) json["created_ms"] = *check.created_ms;
  if (!check.keyspaces) return json;
  json["keyspaces"] = Json::array();
  for (const durable::SnapshotKeyspace& keyspace : *check.keyspaces) {
    json["keyspaces"].push_back({{"keyspace", keyspace.index},
                                 {"engine", keyspace.engine},
                                 {"items", keyspace.items},
                                 {"version", keyspace.version},
                                 {"now_ms", keyspace.now_ms},
                                 {"log_position", keyspace.log_position}});
  }
  return json;
}

// Names of files may contain any bytes, so invalid UTF-8 is replaced.
std::string Line(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string JsonOf(const durable::DirectoryCheck& check) {
  Json snapshots = Json::array();
  for (const durable::SnapshotCheck& snapshot : check.snapshots) {
    snapshots.push_back(ToJson(snapshot));
  }
  Json keyspaces = Json::array();
  for (const auto& [index, engine] : check.keyspaces) {
    keyspaces.push_back({{"keyspace", index}, {"engine", engine}});
  }
  return Line({{"directory", check.directory},
               {"sound", check.damage.empty()},
               {"keyspaces", keyspaces},
               {"snapshots", snapshots},
               {"log", ToJson(check.log)},
               {"put_aside", check.put_aside},
               {"damage_not_needed", ToJson(check.not_needed)},
               {"damage", ToJson(check.damage)}});
}

std::string JsonOf(const durable::SnapshotCheck& check) {
  Json json = ToJson(check);
  json["sound"] = check.damage.empty();
  return Line(json);
}

std::string JsonOf(const durable::LogCheck& check) {
  Json json = ToJson(check);
  json["sound"] = check.damage.empty();
  json["damage"] = ToJson(check.damage);
  return Line(json);
}

std::string JsonOf(const durable::RdbCheck& check) {
  return Line({{"file", check.file},
               {"file_bytes", check.file_bytes},
               {"sound", check.damage.empty()},
               {"version", check.summary.version},
               {"strings", check.summary.strings},
               {"collections", check.summary.collections},
               {"skipped", check.summary.skipped},
               {"functions", check.summary.functions},
               {"has_right_checksum", check.summary.is_checked},
               {"damage", ToJson(check.damage)}});
}

std::string JsonOf(const durable::Rehearsal& rehearsal) {
  const durable::RecoveryReport& report = rehearsal.report;
  Json keyspaces = Json::array();
  for (const auto& [index, items] : rehearsal.items) {
    keyspaces.push_back({{"keyspace", index}, {"keys", items}});
  }
  Json json = {{"starts", true},
               {"keyspaces", keyspaces},
               {"snapshot", nullptr},
               {"snapshot_items", report.snapshot_items},
               {"log_records", report.log_records},
               {"log_changes", report.log_changes},
               {"log_dropped", report.log_dropped},
               {"lacks_log", report.lacks_log},
               {"torn", ToJsonOfTornEnd(report)}};
  if (!report.snapshot.empty()) json["snapshot"] = report.snapshot;
  return Line(json);
}

std::string JsonOfFailedStart(const std::string& problem) {
  return Line({{"starts", false}, {"problem", problem}});
}

std::string JsonOf(const durable::RecoveryReport& report) {
  const durable::RepairReport& repair = report.repair;
  Json json = {{"repaired", repair.has_damage()},           {"snapshot", nullptr},
               {"snapshot_items", report.snapshot_items},   {"log_records", report.log_records},
               {"log_changes", report.log_changes},         {"log_dropped", report.log_dropped},
               {"torn", ToJsonOfTornEnd(report)},           {"put_aside", repair.put_aside},
               {"made_good", ToJson(repair.made_good)},     {"lost", ToJson(repair.lost)},
               {"unconfirmed_changes", repair.unconfirmed}, {"refused_changes", repair.refused}};
  if (!report.snapshot.empty()) json["snapshot"] = report.snapshot;
  return Line(json);
}

}  // namespace skep
