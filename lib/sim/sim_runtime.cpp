#include "lib/sim/sim_runtime.h"

#include <utility>

#include "lib/sim/sim_datagrams.h"

namespace weft {

namespace {

class TraceSink final : public LogSink {
 public:
  TraceSink(SimWorld& world, std::string host) : world_(world), host_(std::move(host)) {}
  void write(const LogRecord& record) override {
    std::string line(to_string(record.level));
    line.append(" [").append(record.module).append("] ").append(record.text);
    world_.note(record.node_id.empty() ? std::string_view(host_) : record.node_id, line);
  }

 private:
  SimWorld& world_;
  std::string host_;
};

}  // namespace

std::unique_ptr<Stream> SimNetwork::connect(const SocketAddress& to, const StreamOptions& options) {
  return fabric_.connect(loop_, to, options);
}

Result<std::unique_ptr<StreamListener>> SimNetwork::listen(const SocketAddress& at,
                                                           const StreamOptions& options,
                                                           AcceptCallback on_accept) {
  return fabric_.listen(loop_, at, options, std::move(on_accept));
}

Result<std::unique_ptr<DatagramSocket>> SimNetwork::open_datagram(const DatagramOptions& options,
                                                                  DatagramCallback on_datagram) {
  return fabric_.datagrams().open(loop_, options, std::move(on_datagram));
}

std::vector<InterfaceAddress> SimNetwork::interfaces() const {
  return {{.name = "lo", .address = "127.0.0.1", .broadcast = "127.255.255.255", .is_loopback = true},
          {.name = "eth0", .address = loop_.host().address(), .broadcast = "10.255.255.255"}};
}

Value SimSystemProbe::health() {
  constexpr std::int64_t kMemory = 16LL << 30;
  const double load = cpu_percent_ / 100.0;
  const double uptime = std::chrono::duration<double>(loop_.world().elapsed()).count();
  return Value{
      {"cpu",
       {{"load1", load}, {"load5", load}, {"load15", load}, {"cores", 1}, {"utilization", cpu_percent_}}},
      {"mem", {{"free", kMemory / 2}, {"total", kMemory}, {"percent", 50.0}}},
      {"os",
       {{"uptime", uptime},
        {"type", "Linux"},
        {"release", "sim"},
        {"hostname", loop_.host().name()},
        {"arch", "x64"},
        {"platform", "linux"},
        {"user",
         {{"uid", 1000}, {"gid", 1000}, {"username", "weft"}, {"homedir", "/"}, {"shell", "/bin/sh"}}}}},
      {"process",
       {{"pid", process_id_},
        {"memory", {{"rss", 8 << 20}}},
        {"uptime", uptime},
        {"argv", arr("simulated")}}}};
}

SimRuntime::SimRuntime(SimWorld& world, SimHost& host, const SimProcessOptions& options)
    : loop_(world, host, options.clock_rate),
      network_(loop_),
      random_(world.draw_seed()),
      system_(loop_, 1000 + static_cast<std::int64_t>(world.draw_process_number())),
      log_(std::make_shared<TraceSink>(world, host.name())) {}

SimRuntime::~SimRuntime() {
  kill();
}

void SimRuntime::kill() {
  if (loop_.is_dead()) return;
  loop_.world().fabric().close_all(loop_, !host().is_up());
  loop_.kill();
}

}  // namespace weft
