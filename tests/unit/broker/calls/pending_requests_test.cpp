#include "broker/calls/pending_requests.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <string>
#include <vector>

namespace weft {

namespace {

// The table only hands its pointers on.
CallRecord* record(int& place) {
  return reinterpret_cast<CallRecord*>(&place);
}

struct Added {
  std::uint32_t slot;
  std::string id;
};

Added add(PendingRequests& pending, CallRecord* call) {
  char id[PendingRequests::kIdSize];
  const std::uint32_t slot = pending.add(call, id);
  return {slot, std::string(id, sizeof id)};
}

}  // namespace

TEST_SUITE("pending requests") {
  TEST_CASE("an id leads to its call until the call is removed") {
    PendingRequests pending(0x1234, 0x5678);
    int a = 0, b = 0;
    const Added first = add(pending, record(a));
    const Added second = add(pending, record(b));
    CHECK(pending.size() == 2);
    CHECK(pending.find(first.id) == record(a));
    CHECK(pending.find(second.id) == record(b));
    pending.remove(first.slot);
    CHECK(pending.find(first.id) == nullptr);
    CHECK(pending.find(second.id) == record(b));
    CHECK(pending.size() == 1);
  }

  TEST_CASE("ids have the form of a UUID") {
    PendingRequests pending(~0ULL, 0);
    int a = 0;
    const std::string id = add(pending, record(a)).id;
    REQUIRE(id.size() == 36);
    for (std::size_t i = 0; i < id.size(); ++i) {
      const bool hyphen = i == 8 || i == 13 || i == 18 || i == 23;
      CHECK(hyphen == (id[i] == '-'));
      if (!hyphen) CHECK(std::isxdigit(static_cast<unsigned char>(id[i])) != 0);
    }
  }

  TEST_CASE("no id is given twice, however often places are used again") {
    PendingRequests pending(0xfeedfacecafebeef, 42);
    int calls[8] = {};
    std::set<std::string> ids;
    for (int round = 0; round < 500; ++round) {
      std::vector<Added> open;
      for (int& call : calls) open.push_back(add(pending, record(call)));
      for (const Added& one : open) {
        CHECK(ids.insert(one.id).second);
        pending.remove(one.slot);
      }
    }
    CHECK(ids.size() == 4000);
    CHECK(pending.size() == 0);
  }

  TEST_CASE("a late id finds nothing, though its place has a new call") {
    PendingRequests pending(1, 2);
    int a = 0, b = 0;
    const Added old = add(pending, record(a));
    pending.remove(old.slot);
    const Added now = add(pending, record(b));
    CHECK(now.slot == old.slot);
    CHECK(pending.find(old.id) == nullptr);
    CHECK(pending.find(now.id) == record(b));
  }

  TEST_CASE("two nodes' ids differ, and one finds nothing of the other's") {
    PendingRequests here(0x1111, 0x2222);
    PendingRequests there(0x3333, 0x4444);
    int a = 0;
    const Added own = add(here, record(a));
    const Added other = add(there, record(a));
    CHECK(own.id != other.id);
    CHECK(here.find(other.id) == nullptr);
    CHECK(there.find(own.id) == nullptr);
  }

  TEST_CASE("forged ids find nothing and do no harm") {
    PendingRequests pending(0xabcdef, 0x123456);
    int a = 0;
    const std::string id = add(pending, record(a)).id;
    std::vector<std::string> forged = {"",
                                       "x",
                                       std::string(35, '0'),
                                       std::string(36, '0'),
                                       std::string(36, '-'),
                                       std::string(36, 'f'),
                                       std::string(37, '0'),
                                       std::string(36, '\xff'),
                                       std::string(5000, 'a'),
                                       id + "0",
                                       "ffffffff-ffff-ffff-ffff-ffffffffffff"};
    for (std::size_t i = 0; i < id.size(); ++i) {  // One digit off, at every place.
      std::string wrong = id;
      wrong[i] = wrong[i] == '7' ? '8' : '7';
      forged.push_back(wrong);
      wrong[i] = 'g';
      forged.push_back(wrong);
    }
    std::string upper = id;
    std::transform(upper.begin(), upper.end(), upper.begin(),
                   [](unsigned char c) { return std::toupper(c); });
    if (upper != id) forged.push_back(upper);
    for (const std::string& one : forged) {
      CAPTURE(one);
      CHECK(pending.find(one) == nullptr);
    }
    CHECK(pending.find(id) == record(a));
  }
}

}  // namespace weft
