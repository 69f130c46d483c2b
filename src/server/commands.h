// commands.h: the functions that the command table refers to. One file for each group.
#pragma once

#include "server/command.h"

namespace skep::commands {

// commands_connection.cc
void FinishPing(const Call& call, const Batch& batch, uint32_t slot);
void FinishEcho(const Call& call, const Batch& batch, uint32_t slot);
void RunAuth(const ServerCall& call);
void RunHello(const ServerCall& call);
void RunQuit(const Call& call);
void RunReset(const ServerCall& call);
void RunSelect(const ServerCall& call);

// commands_client.cc
void RunClient(const ServerCall& call);
std::span<const Subcommand> ClientSubcommands();

// commands_command.cc
void FinishCommand(const ServerCall& call, const Batch& batch, uint32_t slot);
std::span<const Subcommand> CommandSubcommands();
// Replies with the command's name, and its entry in COMMAND DOCS.
void ReplyDocs(RespWriter reply, const Command& command);

// commands_server.cc
void RunConfig(const ServerCall& call);
std::span<const Subcommand> ConfigSubcommands();
Plan PlanDbsize(const ServerCall& call, Batch& batch);
Plan PlanFlushDb(const Call& call, Batch& batch);
void FinishFlushDb(const Call& call, const Batch& batch, uint32_t slot);
void RunDbsize(const ServerCall& call);
void RunInfo(const ServerCall& call);
void FinishTime(const ServerCall& call, const Batch& batch, uint32_t slot);
void RunFlushAll(const ServerCall& call);
void RunFlushDb(const Call& call);
void RunShutdown(const ServerCall& call);

// commands_persistence.cc
void RunSave(const ServerCall& call);
void RunBgRewriteAof(const ServerCall& call);
void RunBgSave(const ServerCall& call);
void FinishLastSave(const ServerCall& call, const Batch& batch, uint32_t slot);

// commands_string.cc
Plan PlanGet(const Call& call, Batch& batch);
// Likewise for the reply: a long value may be pinned (Request::kMayPin), and is then not in the
// outcome's bytes.
Plan PlanGetToSend(const Call& call, Batch& batch);
Plan PlanLength(const Call& call, Batch& batch);
Plan PlanSet(const Call& call, Batch& batch);
Plan PlanSetNx(const Call& call, Batch& batch);
Plan PlanGetSet(const Call& call, Batch& batch);
Plan PlanGetDel(const Call& call, Batch& batch);
Plan PlanAppend(const Call& call, Batch& batch);
Plan PlanIncr(const Call& call, Batch& batch);
Plan PlanDecr(const Call& call, Batch& batch);
Plan PlanIncrBy(const Call& call, Batch& batch);
Plan PlanDecrBy(const Call& call, Batch& batch);
void FinishValue(const Call& call, const Batch& batch, uint32_t slot);
void FinishSet(const Call& call, const Batch& batch, uint32_t slot);
void FinishWhether(const Call& call, const Batch& batch, uint32_t slot);
void FinishStrlen(const Call& call, const Batch& batch, uint32_t slot);
void FinishInteger(const Call& call, const Batch& batch, uint32_t slot);
Plan PlanMget(const Call& call, Batch& batch);
Plan PlanMset(const Call& call, Batch& batch);
Plan PlanMsetNx(const Call& call, Batch& batch);
void FinishMget(const Call& call, const Batch& batch, uint32_t slot);
void FinishMset(const Call& call, const Batch& batch, uint32_t slot);
void FinishMsetNx(const Call& call, const Batch& batch, uint32_t slot);
Plan PlanIncrByFloat(const Call& call, Batch& batch);
void FinishIncrByFloat(const Call& call, const Batch& batch, uint32_t slot);
Plan PlanGetRange(const Call& call, Batch& batch);
Plan PlanSetRange(const Call& call, Batch& batch);
void FinishSetRange(const Call& call, const Batch& batch, uint32_t slot);
// Replies with the bytes that a function has returned.
void FinishReturned(const Call& call, const Batch& batch, uint32_t slot);
void FinishGetRange(const Call& call, const Batch& batch, uint32_t slot);

// commands_lcs.cc
Plan PlanLcs(const Call& call, Batch& batch);
void FinishLcs(const Call& call, const Batch& batch, uint32_t slot);

// commands_object.cc
Plan PlanObject(const Call& call, Batch& batch);
void FinishObject(const ServerCall& call, const Batch& batch, uint32_t slot);
void RunObject(const ServerCall& call);
void RunCopy(const ServerCall& call);
void RunMove(const ServerCall& call);
void RunSwapDb(const ServerCall& call);
std::span<const Subcommand> ObjectSubcommands();

// commands_memory.cc
Plan PlanMemory(const Call& call, Batch& batch);
void FinishMemory(const ServerCall& call, const Batch& batch, uint32_t slot);
std::span<const Subcommand> MemorySubcommands();

// commands_latency.cc
// Runs a subcommand that needs no request.
void FinishSubcommand(const ServerCall& call, const Batch& batch, uint32_t slot);
std::span<const Subcommand> LatencySubcommands();
std::span<const Subcommand> SlowLogSubcommands();

// commands_bit.cc
Plan PlanGetBit(const Call& call, Batch& batch);
Plan PlanSetBit(const Call& call, Batch& batch);
Plan PlanBitPos(const Call& call, Batch& batch);
Plan PlanBitField(const Call& call, Batch& batch);
Plan PlanBitFieldRo(const Call& call, Batch& batch);
void FinishGetBit(const Call& call, const Batch& batch, uint32_t slot);
Plan PlanBitCount(const Call& call, Batch& batch);
void FinishBitCount(const Call& call, const Batch& batch, uint32_t slot);
void FinishBitPos(const Call& call, const Batch& batch, uint32_t slot);
void FinishBitField(const Call& call, const Batch& batch, uint32_t slot);
void RunBitOp(const ServerCall& call);

// commands_expiry.cc
Plan PlanExpire(const Call& call, Batch& batch);
Plan PlanPexpire(const Call& call, Batch& batch);
Plan PlanExpireAt(const Call& call, Batch& batch);
Plan PlanPexpireAt(const Call& call, Batch& batch);
Plan PlanSetEx(const Call& call, Batch& batch);
Plan PlanPsetEx(const Call& call, Batch& batch);
Plan PlanPersist(const Call& call, Batch& batch);
Plan PlanGetEx(const Call& call, Batch& batch);
Plan PlanKexpire(const Call& call, Batch& batch);
void FinishGetEx(const Call& call, const Batch& batch, uint32_t slot);
void FinishTtl(const Call& call, const Batch& batch, uint32_t slot);
void FinishPttl(const Call& call, const Batch& batch, uint32_t slot);
void FinishExpireTime(const Call& call, const Batch& batch, uint32_t slot);
void FinishPexpireTime(const Call& call, const Batch& batch, uint32_t slot);
void RunKexpire(const ServerCall& call);

// commands_batch.cc
Plan PlanDelEx(const Call& call, Batch& batch);
Plan PlanKcas(const Call& call, Batch& batch);
Plan PlanMsetEx(const Call& call, Batch& batch);
Plan PlanKbatch(const Call& call, Batch& batch);
void FinishDigest(const Call& call, const Batch& batch, uint32_t slot);
void FinishKcas(const Call& call, const Batch& batch, uint32_t slot);
void FinishMsetEx(const Call& call, const Batch& batch, uint32_t slot);
void FinishKbatch(const Call& call, const Batch& batch, uint32_t slot);

// commands_key.cc
Plan PlanExists(const Call& call, Batch& batch);
Plan PlanDel(const Call& call, Batch& batch);
Plan PlanRandomKey(const ServerCall& call, Batch& batch);
Plan PlanRename(const Call& call, Batch& batch);
Plan PlanRenameNx(const Call& call, Batch& batch);
void FinishDoneCount(const Call& call, const Batch& batch, uint32_t slot);
void FinishRename(const Call& call, const Batch& batch, uint32_t slot);
void FinishRenameNx(const Call& call, const Batch& batch, uint32_t slot);
void FinishType(const Call& call, const Batch& batch, uint32_t slot);
void FinishRandomKey(const Call& call, const Batch& batch, uint32_t slot);
Plan PlanKeys(const ServerCall& call, Batch& batch);
Plan PlanScan(const ServerCall& call, Batch& batch);
void FinishKeys(const Call& call, const Batch& batch, uint32_t slot);
void FinishScan(const ServerCall& call, const Batch& batch, uint32_t slot);
void RunKeys(const ServerCall& call);
void RunScan(const ServerCall& call);

// commands_range.cc
Plan PlanKrange(const Call& call, Batch& batch);
Plan PlanServerKrange(const ServerCall& call, Batch& batch);
Plan PlanKcount(const Call& call, Batch& batch);
Plan PlanKdelrange(const Call& call, Batch& batch);
Plan PlanKfloor(const Call& call, Batch& batch);
Plan PlanKceil(const Call& call, Batch& batch);
Plan PlanKfirst(const Call& call, Batch& batch);
Plan PlanKlast(const Call& call, Batch& batch);
void FinishKrange(const Call& call, const Batch& batch, uint32_t slot);
void FinishCount(const Call& call, const Batch& batch, uint32_t slot);
void FinishNeighbour(const Call& call, const Batch& batch, uint32_t slot);
void RunKrange(const ServerCall& call);
void RunKcount(const ServerCall& call);
void RunKdelrange(const Call& call);

// commands_kscan.cc
void RunKscan(const ServerCall& call);

// commands_function.cc
Plan PlanVupdate(const Call& call, Batch& batch);
Plan PlanVreduce(const Call& call, Batch& batch);
Plan PlanVfilter(const Call& call, Batch& batch);
void FinishVupdate(const Call& call, const Batch& batch, uint32_t slot);
void FinishVreduce(const Call& call, const Batch& batch, uint32_t slot);
void FinishVfilter(const Call& call, const Batch& batch, uint32_t slot);
void FinishFn(const ServerCall& call, const Batch& batch, uint32_t slot);
std::span<const Subcommand> FnSubcommands();
void RunKreduce(const ServerCall& call);

// commands_transaction.cc
Plan PlanMulti(const Call& call, Batch& batch);
Plan PlanDiscard(const Call& call, Batch& batch);
void FinishOk(const Call& call, const Batch& batch, uint32_t slot);
void RunExec(const Call& call);
void RunServerExec(const ServerCall& call);
void RunWatch(const ServerCall& call);
void RunUnwatch(const Call& call);

}  // namespace skep::commands
