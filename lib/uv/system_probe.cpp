#include "lib/uv/system_probe.h"

#include <malloc.h>
#include <uv.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <optional>
#include <string>

namespace weft {

namespace {

constexpr std::string_view kVersion = WEFT_VERSION;

std::string read_file(const char* path) {
  std::string text;
  std::FILE* file = std::fopen(path, "r");
  if (file == nullptr) return text;
  char part[4096];
  while (const std::size_t count = std::fread(part, 1, sizeof part, file)) text.append(part, count);
  std::fclose(file);
  return text;
}

CpuTimes read_cpu_times() {
  // One short read; libuv's way opens several files for each core.
  char line[512] = "";
  if (std::FILE* file = std::fopen("/proc/stat", "r")) {
    const std::size_t count = std::fread(line, 1, sizeof line - 1, file);
    std::fclose(file);
    if (const auto times = parse_cpu_times({line, count})) return *times;
  }
  uv_cpu_info_t* cores = nullptr;
  int count = 0;
  CpuTimes times;
  if (uv_cpu_info(&cores, &count) != 0) return times;
  for (int i = 0; i < count; ++i) {
    const auto& spent = cores[i].cpu_times;
    times.busy += spent.user + spent.nice + spent.sys + spent.irq;
    times.total += spent.user + spent.nice + spent.sys + spent.irq + spent.idle;
  }
  uv_free_cpu_info(cores, count);
  return times;
}

// As Node.js calls them.
std::string_view architecture_name(std::string_view machine) {
  if (machine == "x86_64" || machine == "amd64") return "x64";
  if (machine == "aarch64") return "arm64";
  if (machine.starts_with("arm")) return "arm";
  if (machine == "i686" || machine == "i386") return "ia32";
  return machine;
}

std::string_view platform_name(std::string_view system) {
  if (system == "Linux") return "linux";
  if (system == "Darwin") return "darwin";
  if (system == "FreeBSD") return "freebsd";
  return system;
}

std::size_t core_count() {
  return std::max<std::size_t>(uv_available_parallelism(), 1);
}

Value cpu_health() {
  double load[3] = {};
  uv_loadavg(load);
  const auto cores = core_count();
  const double utilization = std::min(100.0, std::floor(load[0] * 100 / static_cast<double>(cores)));
  return Value{{"load1", load[0]},
               {"load5", load[1]},
               {"load15", load[2]},
               {"cores", cores},
               {"utilization", static_cast<std::int64_t>(utilization)}};
}

Value memory_health() {
  const std::uint64_t free = uv_get_free_memory();
  const std::uint64_t total = uv_get_total_memory();
  return Value{
      {"free", free},
      {"total", total},
      // The free share, as everywhere in the mesh.
      {"percent", total == 0 ? 0.0 : 100.0 * static_cast<double>(free) / static_cast<double>(total)}};
}

Value user_health() {
  uv_passwd_t user;
  if (uv_os_get_passwd(&user) != 0) return Value();
  Value health{{"uid", static_cast<std::int64_t>(user.uid)},
               {"gid", static_cast<std::int64_t>(user.gid)},
               {"username", user.username == nullptr ? "" : user.username},
               {"homedir", user.homedir == nullptr ? "" : user.homedir},
               {"shell", user.shell == nullptr ? "" : user.shell}};
  uv_os_free_passwd(&user);
  return health;
}

Value system_health() {
  uv_utsname_t name{};
  uv_os_uname(&name);
  double uptime_s = 0;
  uv_uptime(&uptime_s);
  char host[UV_MAXHOSTNAMESIZE] = "";
  std::size_t host_size = sizeof host;
  uv_os_gethostname(host, &host_size);
  return Value{{"uptime", uptime_s},
               {"type", std::string_view(name.sysname)},
               {"release", std::string_view(name.release)},
               {"hostname", std::string_view(host)},
               {"arch", architecture_name(name.machine)},
               {"platform", platform_name(name.sysname)},
               {"user", user_health()}};
}

Value arguments() {
  Value list = Value::array();
  const std::string line = read_file("/proc/self/cmdline");  // Each ends with a NUL.
  for (std::size_t start = 0; start < line.size();) {
    const std::size_t end = std::min(line.find('\0', start), line.size());
    list.push_back(std::string_view(line).substr(start, end - start));
    start = end + 1;
  }
  return list;
}

Value heap_health() {
  std::size_t resident = 0;
  uv_resident_set_memory(&resident);
  Value memory{{"rss", resident}};
#if defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 33)
  const struct mallinfo2 heap = mallinfo2();
  memory.set("heapTotal", heap.arena + heap.hblkhd);
  memory.set("heapUsed", heap.uordblks + heap.hblkhd);
#endif
  return memory;
}

}  // namespace

std::optional<CpuTimes> parse_cpu_times(std::string_view proc_stat) {
  if (!proc_stat.starts_with("cpu ")) return std::nullopt;
  std::string_view line = proc_stat.substr(4, proc_stat.find('\n') - 4);
  CpuTimes times;
  // user nice system idle iowait irq softirq steal; the guest times behind them are part of user and nice.
  for (int column = 0; column < 8; ++column) {
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    std::uint64_t ticks = 0;
    const auto parsed = std::from_chars(line.data(), line.data() + line.size(), ticks);
    if (parsed.ec != std::errc()) {
      if (column < 4) return std::nullopt;
      break;
    }
    line.remove_prefix(static_cast<std::size_t>(parsed.ptr - line.data()));
    times.total += ticks;
    if (column != 3 && column != 4) times.busy += ticks;
  }
  return times;
}

UvSystemProbe::UvSystemProbe() : last_(read_cpu_times()), started_ns_(uv_hrtime()) {}

int UvSystemProbe::cpu_percent() {
  const CpuTimes present = read_cpu_times();
  // Ticks are 10 ms: a call soon after the last one learns nothing and repeats it.
  if (present.total <= last_.total || present.busy < last_.busy) return percent_;
  const double share =
      static_cast<double>(present.busy - last_.busy) / static_cast<double>(present.total - last_.total);
  percent_ = static_cast<int>(std::lround(std::min(share, 1.0) * 100));
  last_ = present;
  return percent_;
}

std::int64_t UvSystemProbe::process_id() const {
  return uv_os_getpid();
}

Value UvSystemProbe::health() {
  const double uptime_s = static_cast<double>(uv_hrtime() - started_ns_) / 1e9;
  return Value{
      {"cpu", cpu_health()},
      {"mem", memory_health()},
      {"os", system_health()},
      {"process",
       Value{{"pid", process_id()}, {"memory", heap_health()}, {"uptime", uptime_s}, {"argv", arguments()}}},
      {"client", Value{{"type", "cpp"}, {"version", kVersion}, {"langVersion", "C++20"}}}};
}

}  // namespace weft
