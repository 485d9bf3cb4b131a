#include "lib/protocol/wire_error.h"

#include <doctest/doctest.h>

#include <string>

#include "lib/protocol/serializer.h"
#include "tests/support/vectors.h"

namespace weft {

namespace {

Error received(const Value& wire, std::string_view sender = "callee") {
  return error_from_wire(Payload(wire), sender);
}

std::string class_name(const Error& error) {
  try {
    error.raise();
  } catch (const ServiceNotFoundError&) {
    return "ServiceNotFoundError";
  } catch (const ServiceNotAvailableError&) {
    return "ServiceNotAvailableError";
  } catch (const RequestTimeoutError&) {
    return "RequestTimeoutError";
  } catch (const RequestSkippedError&) {
    return "RequestSkippedError";
  } catch (const RequestRejectedError&) {
    return "RequestRejectedError";
  } catch (const QueueIsFullError&) {
    return "QueueIsFullError";
  } catch (const MaxCallLevelError&) {
    return "MaxCallLevelError";
  } catch (const ServiceSchemaError&) {
    return "ServiceSchemaError";
  } catch (const BrokerOptionsError&) {
    return "BrokerOptionsError";
  } catch (const GracefulStopTimeoutError&) {
    return "GracefulStopTimeoutError";
  } catch (const ProtocolVersionMismatchError&) {
    return "ProtocolVersionMismatchError";
  } catch (const InvalidPacketDataError&) {
    return "InvalidPacketDataError";
  } catch (const BrokerDisconnectedError&) {
    return "BrokerDisconnectedError";
  } catch (const ValidationError&) {
    return "ValidationError";
  } catch (const ClientError&) {
    return "ClientError";
  } catch (const ServerError&) {
    return "ServerError";
  } catch (const RetryableError&) {
    return "RetryableError";
  } catch (const Exception&) {
    return "Exception";
  }
}

}  // namespace

TEST_SUITE("wire error") {
  TEST_CASE("what a JavaScript caller got of each recorded failure, a weft caller gets") {
    const Value index = test::load_json_vector("index.json");
    const Value outcomes = test::load_json_vector("outcomes.json");
    int compared = 0;
    for (const Value& entry : index.items()) {
      const std::string file(entry["file"].str_or({}));
      const std::string step(entry["step"].str_or({}));
      const bool is_plain = file.starts_with("nats-json/") || file.starts_with("nats-msgpack/");
      if (!is_plain || !step.starts_with("err-") || entry["packet"].str_or({}) != "RES") continue;
      CAPTURE(file);
      // The node that failed answers the node that called; a nested failure passes through both.
      const Value& expected = outcomes[file.substr(0, file.find('/'))][step]["rejected"];
      REQUIRE(expected.is_object());
      auto serializer = make_serializer(file.starts_with("nats-json/") ? "JSON" : "MsgPack").value();
      const Buffer bytes = test::load_vector(file);
      ResponsePacket packet;
      REQUIRE(serializer->decode(bytes.view(), packet).ok());
      REQUIRE_FALSE(packet.success);
      const Error error = error_from_wire(packet.error, packet.sender);
      CHECK(error.name() == expected["name"].str());
      CHECK(error.detail().code == expected["code"]);
      CHECK(error.detail().type == expected["type"]);
      CHECK(error.detail().retryable.has_value() == expected.contains("retryable"));
      CHECK(error.retryable() == expected["retryable"].boolean_or(false));
      CHECK(error.node_id() == expected["nodeID"].str());
      CHECK(error.stack().starts_with(std::string(expected["name"].str())));
      const bool has_data = !expected["data"].contains("$undefined");
      CHECK(error.detail().data.has_value() == has_data);
      if (has_data) CHECK(error.data() == expected["data"]);
      // Messages rebuilt from data are in our own words; those of the thrower are kept.
      const bool is_rebuilt = error.error_class() == ErrorClass::kServiceNotFound ||
                              error.error_class() == ErrorClass::kRequestTimeout;
      if (!is_rebuilt) CHECK(error.message() == expected["message"].str());
      ++compared;
    }
    CHECK(compared >= 20);
  }

  TEST_CASE("how an error of each name is rebuilt") {
    struct Row {
      const char* wire;
      const char* raised;
      int code;
      const char* type;
      bool retryable;
      const char* message;
    };
    const Row rows[] = {
        {R"({"name":"MoleculerError","message":"m","code":418,"type":"T","retryable":false})", "Exception",
         418, "T", false, "m"},
        {R"({"name":"MoleculerError","message":"m"})", "Exception", 500, "", false, "m"},
        {R"({"name":"MoleculerRetryableError","message":"m","code":0,"retryable":true})", "RetryableError",
         500, "", true, "m"},
        {R"({"name":"MoleculerServerError","message":"m","type":"X","retryable":true})", "ServerError", 500,
         "X", true, "m"},
        {R"({"name":"MoleculerClientError","message":"m","code":null})", "ClientError", 400, "", false, "m"},
        {R"({"name":"MoleculerClientError","message":"m","code":409,"retryable":true})", "ClientError", 409,
         "", true, "m"},
        {R"({"name":"ValidationError","message":"m","code":999,"retryable":false})", "ValidationError", 422,
         "VALIDATION_ERROR", false, "m"},
        {R"({"name":"ValidationError","message":"m","type":"MINE"})", "ValidationError", 422, "MINE", false,
         "m"},
        {R"({"name":"ServiceSchemaError","message":"m","code":1})", "ServiceSchemaError", 500,
         "SERVICE_SCHEMA_ERROR", false, "m"},
        {R"({"name":"BrokerOptionsError","message":"m","code":1})", "BrokerOptionsError", 500,
         "BROKER_OPTIONS_ERROR", false, "m"},
        {R"({"name":"ServiceNotFoundError","message":"x","code":1,"type":"Y","retryable":true,)"
         R"("data":{"action":"a.b","nodeID":"n"}})",
         "ServiceNotFoundError", 404, "SERVICE_NOT_FOUND", true, "Service 'a.b' is not found on 'n' node."},
        {R"({"name":"ServiceNotFoundError","data":{"service":"posts","version":2}})", "ServiceNotFoundError",
         404, "SERVICE_NOT_FOUND", false, "Service 'v2.posts' is not found."},
        {R"({"name":"ServiceNotAvailableError","retryable":true,"data":{"action":"a.b"}})",
         "ServiceNotAvailableError", 404, "SERVICE_NOT_AVAILABLE", true, "Service 'a.b' is not available."},
        {R"({"name":"RequestTimeoutError","retryable":true,"data":{"action":"a.b","nodeID":"n"}})",
         "RequestTimeoutError", 504, "REQUEST_TIMEOUT", true,
         "Request is timed out when call 'a.b' action on 'n' node."},
        {R"({"name":"RequestSkippedError","data":{"action":"a.b","nodeID":"n"}})", "RequestSkippedError", 514,
         "REQUEST_SKIPPED", false, nullptr},
        {R"({"name":"RequestRejectedError","retryable":true,"data":{"action":"a.b","nodeID":"n"}})",
         "RequestRejectedError", 503, "REQUEST_REJECTED", true, nullptr},
        {R"({"name":"QueueIsFullError","retryable":true,"data":{"action":"a.b","nodeID":"n","size":9,"limit":9}})",
         "QueueIsFullError", 429, "QUEUE_FULL", true, nullptr},
        {R"({"name":"MaxCallLevelError","data":{"nodeID":"n","level":7}})", "MaxCallLevelError", 500,
         "MAX_CALL_LEVEL", false, nullptr},
        {R"({"name":"GracefulStopTimeoutError"})", "GracefulStopTimeoutError", 500, "GRACEFUL_STOP_TIMEOUT",
         false, nullptr},
        {R"({"name":"ProtocolVersionMismatchError","data":{"nodeID":"n","actual":"5","received":"4"}})",
         "ProtocolVersionMismatchError", 500, "PROTOCOL_VERSION_MISMATCH", false, nullptr},
        {R"({"name":"InvalidPacketDataError"})", "InvalidPacketDataError", 500, "INVALID_PACKET_DATA", false,
         nullptr},
        {R"({"name":"BrokerDisconnectedError","message":"m","code":502,"type":"BAD_GATEWAY","retryable":true})",
         "BrokerDisconnectedError", 502, "BAD_GATEWAY", true, "m"},
        {R"({"name":"MyError","message":"mine","code":"E_TEXT","type":"T","retryable":true})", "Exception", 0,
         "T", true, "mine"},
        {R"({"name":"Error","message":"plain"})", "Exception", 0, "", false, "plain"},
    };
    for (const Row& row : rows) {
      CAPTURE(row.wire);
      const Error error = received(*parse_json(row.wire));
      CHECK(class_name(error) == row.raised);
      CHECK(error.code() == row.code);
      CHECK(error.type() == row.type);
      CHECK(error.retryable() == row.retryable);
      if (row.message != nullptr) {
        CHECK(error.message() == row.message);
      } else {
        CHECK_FALSE(error.message().empty());
      }
      CHECK(error.node_id() == "callee");
    }
  }

  TEST_CASE("an error that passes on keeps its name, code, type, data, flag, stack and birthplace") {
    for (
        const char* text :
        {R"({"name":"MyError","message":"m","code":"E_X","type":"T","retryable":true,"nodeID":"far","stack":"MyError: m\n  at x","data":[1,{"a":null}]})",
         R"({"name":"ValidationError","message":"m","code":422,"type":"VALIDATION_ERROR","retryable":false,"nodeID":"far","stack":"s","data":[{"field":"a"}]})",
         R"({"name":"MoleculerError","message":"","code":418,"nodeID":"far","stack":"s","data":0})",
         R"({"name":"Error","message":"plain","nodeID":"far","stack":"s"})"}) {
      const Value wire = *parse_json(text);
      const Value passed = error_to_wire(received(wire, "near"), "here", true);
      for (const Member& member : wire.members()) {
        CAPTURE(member.key);
        CHECK(passed[member.key] == member.value);
      }
      CHECK(passed.contains("type") == wire.contains("type"));
      CHECK(passed.contains("data") == wire.contains("data"));
      CHECK(passed.contains("retryable") == wire.contains("retryable"));
    }
  }

  TEST_CASE("an error born here names this node, and shows its stack's first line only") {
    const Value wire = error_to_wire(Error::service_not_found("a.b", "here"), "here", false);
    CHECK(wire["nodeID"].str() == "here");
    CHECK(wire["stack"].str() == "ServiceNotFoundError: Service 'a.b' is not found on 'here' node.");
    CHECK(to_json(wire["data"]) == R"({"action":"a.b","nodeID":"here"})");
    Error::Detail detail;
    detail.name = "MyError";
    detail.message = "m";
    detail.stack = "MyError: m\n  at secret.cpp:1";
    CHECK(error_to_wire(Error(detail), "here", false)["stack"].str() == "MyError: m");
    CHECK(error_to_wire(Error(detail), "here", true)["stack"].str() == detail.stack);
  }

  TEST_CASE("a failure without an error object, or with a wrong one, is an error of its own") {
    for (const char* text :
         {"null", "[]", "\"text\"", "5", "{}", R"({"name":5,"message":[],"code":{},"data":null})"}) {
      CAPTURE(text);
      const Error error = received(*parse_json(text));
      CHECK_FALSE(error.name().empty());
      CHECK(error.node_id() == "callee");
      CHECK_THROWS_AS(error.raise(), Exception);
    }
    CHECK(error_from_wire(Payload(), "callee").code() == 500);
  }
}

}  // namespace weft
