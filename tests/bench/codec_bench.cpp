// What reading and writing a packet costs, in nanoseconds: codec_bench [part of a row's text [rounds]]. Run
// it alone on a quiet machine; the best of many rounds is shown. No test: numbers of a shared machine prove
// nothing.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "lib/base/assert.h"
#include "lib/protocol/serializer.h"

namespace codec_bench {

struct Params {
  std::int64_t a = 0;
  std::int64_t b = 0;
  double ratio = 0;
  std::string name;
};
WEFT_FIELDS(Params, a, b, ratio, name)

struct Row {
  std::int64_t id = 0;
  std::string name;
  std::string text;
  double score = 0;
  bool active = false;
};
WEFT_FIELDS(Row, id, name, text, score, active)

struct Table {
  std::vector<Row> rows;
};
WEFT_FIELDS(Table, rows)

}  // namespace codec_bench

namespace {

using codec_bench::Params;
using codec_bench::Row;
using codec_bench::Table;
using namespace weft;

std::size_t g_sink = 1;  // Keeps the work from being optimised away.
std::string_view g_filter;
int g_rounds = 2000;  // Short ones: some fall between the interruptions.

template <typename Work>
double best_ns(Work work) {
  constexpr int kPerRound = 50;
  double best = 1e9;
  for (int round = 0; round < g_rounds; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < kPerRound; ++i) work();
    const std::chrono::duration<double, std::nano> spent = std::chrono::steady_clock::now() - begin;
    best = std::min(best, spent.count() / kPerRound);
  }
  return best;
}

template <typename Work>
void measure(const Serializer& serializer, const char* size, const char* what, Work work) {
  const std::string row = std::string(serializer.name()) + " " + size + ": " + what;
  if (row.find(g_filter) == std::string::npos) return;
  std::printf("%-50s %9.1f ns\n", row.c_str(), best_ns(work));
}

template <typename T>
void run(const Serializer& serializer, const char* size, const T& params) {
  RequestPacket request;
  request.sender = "node-2";
  request.id = "22222222-0000-4000-8000-000000000006";
  request.action = "v1.math.add";
  request.params = Payload::borrow(params);
  request.timeout_ms = 5000;
  request.request_id = request.id;
  request.caller = "gateway";
  ResponsePacket response;
  response.sender = "node-1";
  response.id = request.id;
  response.data = request.params;

  Buffer out;
  WEFT_ASSERT(serializer.encode(request, out).ok());
  std::printf("%.*s %s request: %zu bytes\n", static_cast<int>(serializer.name().size()),
              serializer.name().data(), size, out.size());
  measure(serializer, size, "write request, struct", [&] {
    out.clear();
    if (!serializer.encode(request, out).ok()) std::abort();
    g_sink += out.size();
  });
  Buffer message;
  WEFT_ASSERT(serializer.encode(request, message).ok());
  RequestPacket received;
  measure(serializer, size, "read request, envelope only", [&] {
    if (!serializer.decode(message.view(), received).ok()) std::abort();
    g_sink += received.id.size();
  });
  measure(serializer, size, "read request and struct", [&] {
    if (!serializer.decode(message.view(), received).ok()) std::abort();
    const auto typed = received.params.as<T>();
    if (!typed.ok()) std::abort();
    g_sink += sizeof typed;
  });
  measure(serializer, size, "read request and Value", [&] {
    if (!serializer.decode(message.view(), received).ok()) std::abort();
    g_sink += received.params.value().size();
  });
  measure(serializer, size, "write request, slice spliced", [&] {
    out.clear();
    if (!serializer.encode(received, out).ok()) std::abort();
    g_sink += out.size();
  });
  Buffer answer;
  WEFT_ASSERT(serializer.encode(response, answer).ok());
  ResponsePacket answered;
  measure(serializer, size, "write response, struct", [&] {
    out.clear();
    if (!serializer.encode(response, out).ok()) std::abort();
    g_sink += out.size();
  });
  measure(serializer, size, "read response and struct", [&] {
    if (!serializer.decode(answer.view(), answered).ok()) std::abort();
    const auto typed = answered.data.as<T>();
    if (!typed.ok()) std::abort();
    g_sink += sizeof typed;
  });
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) g_filter = argv[1];
  if (argc > 2) g_rounds = std::atoi(argv[2]);
  const Params small{1, 2, 0.5, "greeting"};
  Table table;
  for (int i = 0; i < 30; ++i) {
    table.rows.push_back({i, "row number " + std::to_string(i),
                          "some text of a common length, not too short, with an é inside", i * 0.25,
                          i % 2 == 0});
  }
  for (const char* name : {"JSON", "MsgPack"}) {
    auto serializer = make_serializer(name);
    WEFT_ASSERT(serializer.ok());
    run(**serializer, "small", small);
    run(**serializer, "4 KiB", table);
  }
  return g_sink == 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
