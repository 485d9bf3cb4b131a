#pragma once

#include <string>

namespace weft::swarm {

class Swarm;

// What is wrong with the catalogues, measured by who really lives; empty when they all agree with that.
[[nodiscard]] std::string why_not_converged(Swarm& swarm);

// In peace, everything works: each action answers each node, direct calls too; a key has one place; an emit
// reaches each group once, a broadcast each subscription.
void check_peace(Swarm& swarm);

// Tables are as large as what is under way, and not larger.
void check_tables(Swarm& swarm);

}  // namespace weft::swarm
