#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "lib/value/value.h"

namespace weft {

// The error classes of the mesh. Their names, codes and types are the protocol's (see the table in
// error.cpp).
enum class ErrorClass : std::uint8_t {
  kBase,
  kRetryable,
  kServer,
  kClient,
  kValidation,
  kServiceNotFound,
  kServiceNotAvailable,
  kRequestTimeout,
  kRequestSkipped,
  kRequestRejected,
  kQueueIsFull,
  kMaxCallLevel,
  kServiceSchema,
  kBrokerOptions,
  kGracefulStopTimeout,
  kProtocolVersionMismatch,
  kInvalidPacketData,
  kBrokerDisconnected,
  kForeign,  // Any other name: a user's class of another node, a JavaScript Error.
};

// What went wrong, as a value: the way failures travel inside weft and over the wire. Copies share their
// content.
class Error {
 public:
  struct Detail {
    ErrorClass error_class = ErrorClass::kBase;
    std::string name;  // As on the wire: "MoleculerError", "ServiceNotFoundError", or any other.
    std::string message;
    Value code;  // An integer as a rule; text for errors of Node's system; null when there is none.
    Value type;  // Text, or null when there is none.
    std::optional<Value> data;
    std::optional<bool> retryable;
    std::string node_id;  // Where it arose; empty until it has travelled.
    std::string stack;
  };

  // An error of `error_class` with that class's name and defaults for code, type and retryable.
  explicit Error(ErrorClass error_class, std::string message = {}, std::string_view type = {},
                 std::optional<Value> data = {});
  explicit Error(Detail detail) : detail_(std::make_shared<Detail>(std::move(detail))) {}

  [[nodiscard]] ErrorClass error_class() const { return detail_->error_class; }
  [[nodiscard]] const std::string& name() const { return detail_->name; }
  [[nodiscard]] const std::string& message() const { return detail_->message; }
  [[nodiscard]] int code() const { return static_cast<int>(detail_->code.i64_or(0)); }
  [[nodiscard]] std::string_view type() const { return detail_->type.str_or({}); }
  [[nodiscard]] const Value& data() const;
  [[nodiscard]] bool retryable() const { return detail_->retryable.value_or(false); }
  [[nodiscard]] const std::string& node_id() const { return detail_->node_id; }
  [[nodiscard]] const std::string& stack() const { return detail_->stack; }
  [[nodiscard]] const Detail& detail() const { return *detail_; }

  // A changed copy.
  [[nodiscard]] Error with_code(Value code) const;
  [[nodiscard]] Error with_node_id(std::string node_id) const;
  [[nodiscard]] Error with_data(Value data) const;
  [[nodiscard]] Error with_retryable(bool retryable) const;

  // "ServiceNotFoundError: Service 'a.b' is not found. (404 SERVICE_NOT_FOUND, node n1)"
  [[nodiscard]] std::string to_string() const;

  // Throws the exception class of error_class().
  [[noreturn]] void raise() const;

  // The errors the mesh itself makes. `node_id` may be empty.
  [[nodiscard]] static Error service_not_found(std::string_view action, std::string_view node_id = {});
  [[nodiscard]] static Error service_not_available(std::string_view action, std::string_view node_id = {});
  [[nodiscard]] static Error request_timeout(std::string_view action, std::string_view node_id);
  [[nodiscard]] static Error request_skipped(std::string_view action, std::string_view node_id);
  [[nodiscard]] static Error request_rejected(std::string_view action, std::string_view node_id);
  [[nodiscard]] static Error queue_is_full(std::string_view action, std::string_view node_id,
                                           std::size_t size, std::size_t limit);
  [[nodiscard]] static Error max_call_level(std::string_view node_id, int level);
  // A bad option: `what` names it, says what was wrong and what is allowed.
  [[nodiscard]] static Error broker_options(std::string what, Value data = {});
  [[nodiscard]] static Error service_schema(std::string what, Value data = {});
  // Rebuilds an error from what a peer sent, as the protocol's table of classes says.
  [[nodiscard]] static Error from_wire(Detail received, std::string_view sender);
  // The error of whatever exception is in flight: ours keeps its content; std::exception and others become a
  // coded base error of code 500.
  [[nodiscard]] static Error from_exception(const std::exception_ptr& exception);

 private:
  std::shared_ptr<const Detail> detail_;
};

// The base of all errors thrown by weft and of those that services throw to be carried to their callers.
class Exception : public std::exception {
 public:
  explicit Exception(Error error) : error_(std::move(error)) {}
  explicit Exception(std::string message, int code = 500, std::string_view type = {},
                     std::optional<Value> data = {})
      : error_(Error(ErrorClass::kBase, std::move(message), type, std::move(data)).with_code(code)) {}

  [[nodiscard]] const Error& error() const { return error_; }
  [[nodiscard]] const char* what() const noexcept override { return error_.message().c_str(); }
  [[nodiscard]] const std::string& name() const { return error_.name(); }
  [[nodiscard]] int code() const { return error_.code(); }
  [[nodiscard]] std::string_view type() const { return error_.type(); }
  [[nodiscard]] const Value& data() const { return error_.data(); }
  [[nodiscard]] bool retryable() const { return error_.retryable(); }
  [[nodiscard]] const std::string& node_id() const { return error_.node_id(); }

 private:
  Error error_;
};

// Worth trying again, perhaps elsewhere.
class RetryableError : public Exception {
 public:
  using Exception::Exception;
  explicit RetryableError(std::string message, int code = 500, std::string_view type = {},
                          std::optional<Value> data = {})
      : Exception(Error(ErrorClass::kRetryable, std::move(message), type, std::move(data)).with_code(code)) {}
};

// The serving side failed.
class ServerError : public RetryableError {
 public:
  using RetryableError::RetryableError;
  explicit ServerError(std::string message, int code = 500, std::string_view type = {},
                       std::optional<Value> data = {})
      : RetryableError(
            Error(ErrorClass::kServer, std::move(message), type, std::move(data)).with_code(code)) {}
};

// The caller is wrong; trying again does not help.
class ClientError : public Exception {
 public:
  using Exception::Exception;
  explicit ClientError(std::string message, int code = 400, std::string_view type = {},
                       std::optional<Value> data = {})
      : Exception(Error(ErrorClass::kClient, std::move(message), type, std::move(data)).with_code(code)) {}
};

class ValidationError : public ClientError {
 public:
  using ClientError::ClientError;
  explicit ValidationError(std::string message, std::string_view type = "VALIDATION_ERROR",
                           std::optional<Value> data = {})
      : ClientError(Error(ErrorClass::kValidation, std::move(message), type, std::move(data))) {}
};

// Errors the mesh itself raises: caught by type, seldom thrown by users.
template <ErrorClass kClass, typename Base>
class MeshError : public Base {
 public:
  explicit MeshError(Error error) : Base(std::move(error)) {}
};
using ServiceNotFoundError = MeshError<ErrorClass::kServiceNotFound, RetryableError>;
using ServiceNotAvailableError = MeshError<ErrorClass::kServiceNotAvailable, RetryableError>;
using RequestTimeoutError = MeshError<ErrorClass::kRequestTimeout, RetryableError>;
using RequestSkippedError = MeshError<ErrorClass::kRequestSkipped, Exception>;
using RequestRejectedError = MeshError<ErrorClass::kRequestRejected, RetryableError>;
using QueueIsFullError = MeshError<ErrorClass::kQueueIsFull, RetryableError>;
using MaxCallLevelError = MeshError<ErrorClass::kMaxCallLevel, Exception>;
using ServiceSchemaError = MeshError<ErrorClass::kServiceSchema, Exception>;
using BrokerOptionsError = MeshError<ErrorClass::kBrokerOptions, Exception>;
using GracefulStopTimeoutError = MeshError<ErrorClass::kGracefulStopTimeout, Exception>;
using ProtocolVersionMismatchError = MeshError<ErrorClass::kProtocolVersionMismatch, Exception>;
using InvalidPacketDataError = MeshError<ErrorClass::kInvalidPacketData, Exception>;
using BrokerDisconnectedError = MeshError<ErrorClass::kBrokerDisconnected, RetryableError>;

}  // namespace weft
