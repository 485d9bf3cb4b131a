#include "broker/calls/canary.h"

#include <algorithm>
#include <vector>

namespace weft {

void Canary::on_request_sent(std::string_view node) {
  auto found = debtors_.find(node);
  if (found == debtors_.end()) found = debtors_.emplace(node, Debtor{}).first;
  Debtor& debtor = found->second;
  if (debtor.owed++ == 0) debtor.quiet_since = loop_.now();
  arm();
}

void Canary::on_request_ended(std::string_view node) {
  const auto found = debtors_.find(node);
  if (found != debtors_.end() && --found->second.owed == 0) debtors_.erase(found);
}

void Canary::on_heard(std::string_view node) {
  const auto found = debtors_.find(node);
  if (found != debtors_.end()) found->second.quiet_since = loop_.now();
}

void Canary::arm() {
  if (!timer_.active()) timer_.set_after(loop_, kSilence / 2, [this] { look(); });
}

void Canary::look() {
  std::vector<std::string> silent;
  // In order of names below: what the table's order is must not show.
  for (auto& [node, debtor] : debtors_) {
    if (loop_.now() - debtor.quiet_since < kSilence) continue;
    debtor.quiet_since = loop_.now();
    silent.push_back(node);
  }
  std::sort(silent.begin(), silent.end());
  if (!debtors_.empty()) arm();
  for (const std::string& node : silent) send_(node);
}

}  // namespace weft
