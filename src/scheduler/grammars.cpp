#include "scheduler/grammars.h"

#include <algorithm>
#include <system_error>

namespace gimbal {
namespace {

constexpr size_t kMostKept = 8;

}  // namespace

Status Grammars::compile(std::string gbnf, Then then) {
  std::optional<Constraint> known;
  {
    const std::lock_guard lock(mutex_);
    known = kept(gbnf);
    if (!known) {
      try {
        if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
      } catch (const std::system_error&) {
        return Error{Code::Failed, "the system cannot create a thread for the grammar", "end other programs"};
      }
      waiting_.push_back({std::move(gbnf), std::move(then)});
    }
  }
  if (known) then(*std::move(known));
  else wake_.notify_one();
  return Done{};
}

void Grammars::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
  for (Job& job : waiting_) job.then(std::nullopt);
  waiting_.clear();
}

void Grammars::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [&] { return stopping_ || !waiting_.empty(); });
    if (stopping_) return;
    const Job job = std::move(waiting_.front());
    waiting_.pop_front();
    auto known = kept(job.gbnf);  // it may have waited for the same one
    lock.unlock();
    auto constraint = known ? Result<Constraint>(*std::move(known)) : made(job.gbnf);
    lock.lock();
    if (constraint && !kept(job.gbnf)) {
      if (kept_.size() == kMostKept) kept_.erase(kept_.begin());
      kept_.emplace_back(job.gbnf, *constraint);
    }
    lock.unlock();
    job.then(std::move(constraint));
    lock.lock();
  }
}

std::optional<Constraint> Grammars::kept(const std::string& gbnf) {
  const auto at = std::find_if(kept_.begin(), kept_.end(), [&](const auto& k) { return k.first == gbnf; });
  if (at == kept_.end()) return {};
  std::rotate(at, at + 1, kept_.end());
  return kept_.back().second;
}

Result<Constraint> Grammars::made(const std::string& gbnf) {
  if (!tree_) tree_ = TokenTree::create(tokenizer_, vocabulary_);
  auto grammar = Grammar::gbnf(gbnf);
  if (!grammar) return grammar.error();
  auto constraint = Constraint::create(*grammar, tree_);
  // The first mask is the same for all texts.
  if (constraint)
    if (auto first = constraint->allowed(); !first) return first.error();
  return constraint;
}

}  // namespace gimbal
