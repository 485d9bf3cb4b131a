#pragma once

// What `weft --help` and `weft COMMAND --help` say beside the lists of options.

namespace weft::cli::help {

inline constexpr const char* kAbout =
    "Looks into a running mesh, and calls what is in it.\n"
    "\n"
    "weft joins the mesh as a node of its own that offers nothing, does one thing, and leaves.";

inline constexpr const char* kAboutEnd = R"(Examples:
  weft nodes                                         who is there (TCP, found by UDP on this network)
  weft nodes --transporter nats://10.0.0.5:4222      the same over NATS
  weft actions 'greeter.*' --details                 what the service greeter offers, with its params
  weft call greeter.hello --name Bob                 calls an action
  weft call greeter.hello '{"name":"Bob"}'           the same
  weft emit user.created --id 42                     tells one instance of each group
  weft ping                                          how far away everyone is

Where the mesh is can also be said once, in the environment: TRANSPORTER, NAMESPACE, SERIALIZER, TCP_URLS,
UDP_PORT, UDP_DISCOVERY; NATS credentials only there: NATS_USER, NATS_PASSWORD, NATS_TOKEN, NATS_CREDENTIALS,
NATS_TLS, NATS_TLS_CA, NATS_TLS_CERT, NATS_TLS_KEY.

Exit codes: 0 done, 1 the call failed or a node did not answer, 2 wrong usage, 3 nobody there (no node, no such
action), 4 the mesh could not be joined.)";

inline constexpr const char* kNodes = "Lists the nodes of the mesh";
inline constexpr const char* kNodesEnd = R"(Examples:
  weft nodes
  weft nodes --details                    with the names of their services, host and metadata
  weft nodes --all                        also nodes that are offline, and those that only look on
  weft nodes --json | jq -r '.[].id'      for scripts: the rows of $node.list)";

inline constexpr const char* kServices = "Lists the services and where they run";
inline constexpr const char* kServicesEnd = R"(Examples:
  weft services
  weft services 'v2.*' --details          with the names of actions, events and nodes
  weft services --node worker-1           of one node
  weft services --all                     also internal ones ($node))";

inline constexpr const char* kActions = "Lists the actions that can be called, with their params";
inline constexpr const char* kActionsEnd = R"(Examples:
  weft actions
  weft actions greeter --details          of all whose name has "greeter" in it: nodes and types of params
  weft actions 'greeter.*' --json         for scripts: the rows of $node.actions

A param with a question mark may be left out.)";

inline constexpr const char* kEvents = "Lists the events that services listen to";
inline constexpr const char* kEventsEnd = R"(Examples:
  weft events
  weft events 'user.*' --details          with the names of the nodes

Of each group, one node gets an emitted event, and every node a broadcast one.)";

inline constexpr const char* kCall = "Calls an action and prints its result as JSON";
inline constexpr const char* kCallEnd = R"(PARAMS, either or both (names go over the members of the JSON):
  '{"a":1}'           one JSON argument, taken as it is; - reads it from standard input, @FILE from a file
  --name value        a member: true, false and numbers are typed, all else is text (hex and 0033 too)
  --name '"42"'       text in any case: the quotes must reach weft
  --name / --no-name  true / false
  --a.b value         nests: {"a":{"b":"value"}}
  --tag[] value       appends to a list
  --name:='[1,null]'  any JSON
weft's own options are not params. What stands behind -- always is: weft call a.b -- --timeout 3

Examples:
  weft call greeter.hello --name Bob
  weft call users.create '{"name":"Bob"}' --address.city Paris --tag[] new --tag[] eu
  weft call math.add --a 5 --b 3 --json
  weft call users.import @users.json --timeout 60
  weft call greeter.hello --name Bob --node worker-2 --meta '{"user":"admin"}'
  weft call '$node.health' --node worker-1

weft waits until a node offers the action, at most --timeout.)";

inline constexpr const char* kEmit = "Sends an event to one instance of each group that listens";
inline constexpr const char* kEmitEnd =
    R"(The payload is written like the params of `weft call`: one JSON argument, --name value …

Examples:
  weft emit user.created --id 42 --name Bob
  weft emit user.created '{"id":42}' --group mail --group stats
  weft emit cache.clean

weft says which groups listen. That nobody does is no failure.)";

inline constexpr const char* kBroadcast = "Sends an event to every instance that listens";
inline constexpr const char* kBroadcastEnd =
    R"(The payload is written like the params of `weft call`: one JSON argument, --name value …

Examples:
  weft broadcast config.changed '{"level":"debug"}'
  weft broadcast cache.clean --group users

weft says which nodes listen. That nobody does is no failure.)";

inline constexpr const char* kPing = "Measures the round trip to nodes";
inline constexpr const char* kPingEnd = R"(Examples:
  weft ping                               everyone
  weft ping worker-1                      one node; waits until it is there, at most --timeout

The round trip is measured when the connection stands. How far the clocks are apart is as good as the round trip is short.)";

}  // namespace weft::cli::help
