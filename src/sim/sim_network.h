// sim_network.h: a network in memory, in one thread, from a seed.
//
// Streams are delayed, split, filled up, parted and reset as SimNetworkOptions say
// (sim_connection.h has the rules of an end and of a reset); datagrams are delayed, lost and
// doubled. Nothing blocks; arrivals happen because the SimClock moves, and it has a reminder of
// each.
//
// Beyond network.h: a listener on 0.0.0.0 or [::] also takes connections to any other host of its
// port and family, and so do datagrams; a stream, listener or socket is in at most one poller
// (EEXIST). Of the datagram sockets of one address the first one gets everything.
//
// Thread safety: one owner of the network and all that it makes. The network must outlive them.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/network.h"
#include "sim/sim_connection.h"
#include "sim/sim_poller.h"

namespace skep {

class SimNetwork;

class SimStream final : public Stream, public SimPollable {
 public:
  SimStream(std::shared_ptr<SimConnection> connection, SimConnection::Side side, Address local,
            Address peer);
  ~SimStream() override { connection_->Close(side_); }

  ssize_t Read(char* to, size_t bytes) override { return connection_->Read(side_, to, bytes); }
  ssize_t Write(std::string_view bytes) override { return connection_->Write(side_, bytes); }
  void FinishSending() override { connection_->FinishSending(side_); }
  void ResetConnection() { connection_->Reset(); }
  Address peer() const override { return peer_; }
  Address local() const override { return local_; }

  bool Readable() const override { return connection_->Readable(side_); }
  bool Writable() const override { return connection_->Writable(side_); }
  bool Broken() const override { return connection_->Broken(side_); }

 private:
  std::shared_ptr<SimConnection> connection_;
  SimConnection::Side side_;
  Address local_;
  Address peer_;
};

class SimListener final : public Listener, public SimPollable {
 public:
  SimListener(SimNetwork& network, Address address) : network_(network), address_(address) {}
  // Connections nobody has accepted are reset.
  ~SimListener() override;

  std::unique_ptr<Stream> Accept(int* error) override;
  Address address() const override { return address_; }

  bool Readable() const override;
  bool Writable() const override { return false; }
  bool Broken() const override { return false; }

 private:
  friend class SimNetwork;
  struct Waiting {
    uint64_t arrival_ns;
    std::unique_ptr<SimStream> stream;
  };

  SimNetwork& network_;
  Address address_;
  std::deque<Waiting> waiting_;  // in the order of arrival
};

class SimDatagrams final : public DatagramSocket, public SimPollable {
 public:
  // `peer`: the only peer; empty: any.
  SimDatagrams(SimNetwork& network, Address address, Address peer)
      : network_(network), address_(std::move(address)), peer_(std::move(peer)) {}
  ~SimDatagrams() override;

  std::span<const Datagram> Receive() override;
  void Send(std::span<const Datagram> datagrams) override;
  Address address() const override { return address_; }

  bool Readable() const override;
  bool Writable() const override { return false; }
  bool Broken() const override { return false; }

 private:
  friend class SimNetwork;
  struct Packet {
    Address from;
    std::string bytes;
  };

  SimNetwork& network_;
  const Address address_;
  const Address peer_;
  std::multimap<uint64_t, Packet> arriving_;  // by the instant of arrival
  std::vector<Packet> received_;              // what the last Receive returned
  std::vector<Datagram> datagrams_;           // the same, as returned
};

class SimNetwork final : public Network {
 public:
  SimNetwork(uint64_t seed, SimClock& clock, Trace& trace, const SimNetworkOptions& options = {});

  Result<std::unique_ptr<Listener>> Listen(const Address& address) override;
  // Connects at once; the listener hears of the connection later.
  Result<std::unique_ptr<Stream>> Connect(const Address& address, int timeout_ms) override;
  Result<std::unique_ptr<DatagramSocket>> BindDatagrams(const Address& address) override;
  Result<std::unique_ptr<DatagramSocket>> ConnectDatagrams(const Address& address) override;
  std::unique_ptr<Poller> NewPoller() override;

  // Cuts every connection, as when the machine at the other end vanishes.
  void ResetAll();
  // The next `count` accepts of a waiting connection fail with this errno; it goes on waiting.
  void FailAccepts(int error, uint64_t count);
  // Sets the options from now on; buffer_bytes counts only for new connections.
  void set_options(const SimNetworkOptions& options) { context_.options = options; }

 private:
  friend class SimListener;
  friend class SimDatagrams;

  Result<std::unique_ptr<DatagramSocket>> OpenDatagrams(const Address& address, Address peer);
  void Carry(const Address& from, const Address& to, std::string_view bytes);
  SimDatagrams* FindDatagrams(const Address& address) const;
  SimListener* FindListener(const Address& address) const;
  Address DrawPort(const Address& address);
  Address NewClientAddress(const Address& server);
  int TakeAcceptError();

  SimNetworkContext context_;
  std::map<Address, SimListener*> listeners_;
  std::vector<SimDatagrams*> datagram_sockets_;
  std::vector<std::weak_ptr<SimConnection>> connections_;
  uint64_t last_connection_ = 0;
  uint16_t next_port_ = 20'000;
  int accept_error_ = 0;
  uint64_t accept_errors_left_ = 0;
};

}  // namespace skep
