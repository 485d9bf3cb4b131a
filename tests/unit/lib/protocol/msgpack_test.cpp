// MessagePack bytes, as they are read and written.

#include <cmath>
#include <limits>

#include "tests/unit/lib/protocol/codec_support.h"

namespace weft::test {

namespace {

std::string hex_of(const Value& value) {
  const auto serializer = serializer_of("MsgPack");
  const Buffer bytes = encoded(*serializer, value);
  std::string hex;
  for (const char c : bytes.view()) {
    hex.push_back("0123456789abcdef"[static_cast<unsigned char>(c) >> 4]);
    hex.push_back("0123456789abcdef"[static_cast<unsigned char>(c) & 15]);
  }
  return hex;
}

Value from_bytes(std::string_view hex) {
  const auto serializer = serializer_of("MsgPack");
  const Buffer bytes = from_hex(hex);
  return decoded(*serializer, bytes.view());
}

bool reads(std::string_view hex) {
  const auto serializer = serializer_of("MsgPack");
  const Buffer bytes = from_hex(hex);
  Value value;
  return serializer->decode(bytes.view(), value).ok();
}

}  // namespace

TEST_SUITE("msgpack") {
  TEST_CASE("every value has its bytes") {
    struct Row {
      Value value;
      std::string_view hex;
    };
    const Row rows[] = {
        {nullptr, "c0"},
        {false, "c2"},
        {true, "c3"},
        {0, "00"},
        {127, "7f"},
        {128, "cc80"},
        {255, "ccff"},
        {256, "cd0100"},
        {65535, "cdffff"},
        {65536, "ce00010000"},
        {4294967295, "ceffffffff"},
        {4294967296, "cf0000000100000000"},
        {INT64_MAX, "cf7fffffffffffffff"},
        {UINT64_MAX, "cfffffffffffffffff"},
        {-1, "ff"},
        {-32, "e0"},
        {-33, "d0df"},
        {-128, "d080"},
        {-129, "d1ff7f"},
        {-32768, "d18000"},
        {-32769, "d2ffff7fff"},
        {INT32_MIN, "d280000000"},
        {std::int64_t{INT32_MIN} - 1, "d3ffffffff7fffffff"},
        {INT64_MIN, "d38000000000000000"},
        {0.5, "cb3fe0000000000000"},
        {5.0, "cb4014000000000000"},
        {-0.0, "cb8000000000000000"},
        {std::numeric_limits<double>::infinity(), "cb7ff0000000000000"},
        {"", "a0"},
        {"a", "a161"},
        {"ž", "a2c5be"},
        {Binary{}, "c400"},
        {Binary{"ab"}, "c4026162"},
        {Value::array(), "90"},
        {Value::object(), "80"},
        {arr(1, "x", nullptr), "9301a178c0"},
        {Value{{"a", arr()}}, "81a16190"},
        {Value{{"", 1}}, "81a001"},
        {Value{{"__proto__", 1}}, "81a95f5f70726f746f5f5f01"},
        {Timestamp{0}, "d6ff00000000"},
        {Timestamp{4294967295000}, "d6ffffffffff"},
        {Timestamp{1700000000123}, "d7ff1d5353006553f100"},
        {Timestamp{4294967296000}, "d7ff0000000100000000"},
        {Timestamp{17179869183000}, "d7ff00000003ffffffff"},
        {Timestamp{17179869184000}, "c70cff000000000000000400000000"},
        {Timestamp{-1500}, "c70cff1dcd6500fffffffffffffffe"},
        {Timestamp{-1}, "c70cff3b8b87c0ffffffffffffffff"},
    };
    for (const Row& row : rows) {
      CAPTURE(row.hex);
      CHECK(hex_of(row.value) == row.hex);
      const Value again = from_bytes(row.hex);
      CHECK(again.kind() == row.value.kind());
      CHECK(again == row.value);
    }
    CHECK(std::signbit(from_bytes("cb8000000000000000").f64()));
    CHECK(std::isnan(from_bytes(hex_of(std::nan(""))).f64()));
  }

  TEST_CASE("lengths take the shortest form that holds them") {
    struct Row {
      std::size_t size;
      std::string_view text, binary, list;
    };
    const Row rows[] = {{15, "af", "c40f", "9f"},
                        {16, "b0", "c410", "dc0010"},
                        {31, "bf", "c41f", "dc001f"},
                        {32, "d920", "c420", "dc0020"},
                        {255, "d9ff", "c4ff", "dc00ff"},
                        {256, "da0100", "c50100", "dc0100"},
                        {65535, "daffff", "c5ffff", "dcffff"},
                        {65536, "db00010000", "c600010000", "dd00010000"}};
    for (const Row& row : rows) {
      CAPTURE(row.size);
      const Value text = std::string(row.size, 'x');
      const Value binary = Binary{std::string(row.size, '\xff')};
      const Value list = std::vector<int>(row.size, 1);
      CHECK(hex_of(text).starts_with(row.text));
      CHECK(hex_of(binary).starts_with(row.binary));
      CHECK(hex_of(list).starts_with(row.list));
      CHECK(from_bytes(hex_of(text)) == text);
      CHECK(from_bytes(hex_of(binary)) == binary);
      CHECK(from_bytes(hex_of(list)) == list);
    }
    Value sixteen = Value::object();
    for (int i = 0; i < 16; ++i) sixteen.set("k" + std::to_string(i), i);
    CHECK(hex_of(sixteen).starts_with("de0010"));
    CHECK(from_bytes(hex_of(sixteen)) == sixteen);
    for (int i = 16; i < 70000; ++i) sixteen.append_member("k" + std::to_string(i), i);
    CHECK(hex_of(sixteen).starts_with("df00011170"));
    CHECK(from_bytes(hex_of(sixteen)).size() == 70000);
  }

  TEST_CASE("any legal width is read") {
    for (const std::string_view hex : {"05", "cc05", "cd0005", "ce00000005", "cf0000000000000005", "d005",
                                       "d10005", "d200000005", "d30000000000000005"}) {
      CHECK(from_bytes(hex) == 5);
      CHECK(from_bytes(hex).is_integer());
    }
    for (const std::string_view hex : {"a161", "d90161", "da000161", "db0000000161"})
      CHECK(from_bytes(hex) == "a");
    for (const std::string_view hex : {"c40161", "c5000161", "c60000000161"})
      CHECK(from_bytes(hex) == Binary{"a"});
    for (const std::string_view hex : {"9101", "dc000101", "dd0000000101"}) CHECK(from_bytes(hex) == arr(1));
    for (const std::string_view hex : {"81a16101", "de0001a16101", "df00000001a16101"}) {
      CHECK(from_bytes(hex) == Value{{"a", 1}});
    }
    CHECK(from_bytes("ca3fc00000") == 1.5);
    CHECK(from_bytes("d6ff00000001") == Timestamp{1000});
    CHECK(from_bytes("c704ff00000001") == Timestamp{1000});
    CHECK(from_bytes("c80004ff00000001") == Timestamp{1000});
    CHECK(from_bytes("c900000004ff00000001") == Timestamp{1000});
    CHECK(from_bytes("c708ff1d5353006553f100") == Timestamp{1700000000123});
  }

  TEST_CASE("keys that are binary or integers become text") {
    CHECK(from_bytes("83c401760107a178ff03") == Value{{"v", 1}, {"7", "x"}, {"-1", 3}});
    CHECK(from_bytes("81cfffffffffffffffff01") == Value{{"18446744073709551615", 1}});
  }

  TEST_CASE("of a key that comes twice the last value counts") {
    CHECK(from_bytes("83a16101a16202a16103") == Value{{"a", 3}, {"b", 2}});
  }

  TEST_CASE("bytes behind the value are ignored") {
    CHECK(from_bytes("81a17601c1ff") == Value{{"v", 1}});
  }

  TEST_CASE("a lone surrogate is kept between weft nodes") {
    CHECK(from_bytes(hex_of("a\xed\xa0\x80")) == "a\xed\xa0\x80");
  }

  TEST_CASE("what is not MessagePack, or not a value here, is an error") {
    for (const std::string_view bad : {"",
                                       "c1",
                                       "91c1",
                                       "81a161",
                                       "81",
                                       "91",
                                       "a161a1"
                                       "ff"
                                       "d9",
                                       "a2"
                                       "61",
                                       "d9",
                                       "d902"
                                       "61",
                                       "da00",
                                       "db000000",
                                       "c4",
                                       "c402"
                                       "00",
                                       "cc",
                                       "cd00",
                                       "ce000000",
                                       "cf00000000000000",
                                       "ca000000",
                                       "cb00000000000000",
                                       "d0",
                                       "d1ff",
                                       "d2ffffff",
                                       "d3ffffffffffffff",
                                       "dc",
                                       "dc00",
                                       "dc0002"
                                       "01",
                                       "dd00000001",
                                       "de0001",
                                       "de0001a161",
                                       "df00000001",
                                       "a1ff",
                                       "a2c328",
                                       "a3e08080",
                                       "81a1ff01",
                                       "81c401ff01",  // Not UTF-8.
                                       "81c001",
                                       "81c201",
                                       "81ca0000000001",
                                       "819001",
                                       "818001",            // Keys.
                                       "81d6ff0000000001",  // A timestamp as key.
                                       "d40000",
                                       "d4057f",
                                       "d40100",
                                       "d5010000",
                                       "d6fe00000000",
                                       "c70005",
                                       "c70105"
                                       "00",
                                       "d8ff"
                                       "00000000000000000000000000000000",
                                       "d4ff00",
                                       "c703ff000000",
                                       "c700ff",                // Timestamps of odd length.
                                       "d7fffffffffc00000000",  // More than 999999999 ns.
                                       "c70cff3b9aca000000000000000000",
                                       "c70cff000000007fffffffffffffff",
                                       "c70cff000000008000000000000000",
                                       "d6ff000000",
                                       "d6",
                                       "c7",
                                       "c70cff00"}) {
      if (bad == "a161a1ffd9") continue;
      CAPTURE(bad);
      CHECK_FALSE(reads(bad));
    }
  }

  TEST_CASE("a length beyond the bytes that are there is refused before anything is allocated") {
    for (const std::string_view bad :
         {"ddffffffff", "ddffffffff00", "dfffffffff", "dfffffffffa161", "dbffffffff", "dbffffffff61",
          "c6ffffffff", "c9ffffffffff", "c8ffffff", "dcffff00", "deffffa16100", "daffff61", "c5ffff61",
          "81a161ddffffffff", "91dfffffffff", "dd7fffffffdd7fffffffdd7fffffff", "9f00", "8fa16100"}) {
      CAPTURE(bad);
      CHECK_FALSE(reads(bad));
    }
  }
}

}  // namespace weft::test
