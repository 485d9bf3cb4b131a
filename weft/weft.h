#pragma once

// Everything a service author or caller needs.

#include "broker/broker.h"    // IWYU pragma: export
#include "broker/context.h"   // IWYU pragma: export
#include "broker/service.h"   // IWYU pragma: export
#include "lib/error/error.h"  // IWYU pragma: export
#include "lib/value/typed.h"  // IWYU pragma: export
#include "weft/app.h"         // IWYU pragma: export
