#include "runtime/inputs.h"

#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "base/sha256.h"

namespace gimbal {
namespace {

std::string digest_of(std::span<const float> values, int width, int columns, bool together) {
  Sha256 sha;
  sha.add(columns ? format("{} {}{}\n", width, columns, together ? " together" : "")
                  : format("{}{}\n", width, together ? " together" : ""));
  sha.add({reinterpret_cast<const char*>(values.data()), values.size_bytes()});
  return sha.hex();
}

// The one that may have the position.
const EmbeddingSpan* span_at(std::span<const EmbeddingSpan> all, int position) {
  auto past = std::upper_bound(all.begin(), all.end(), position,
                               [](int p, const EmbeddingSpan& s) { return p < s.position; });
  if (past == all.begin()) return nullptr;
  const EmbeddingSpan& s = *--past;
  return position < s.position + s.rows ? &s : nullptr;
}

}  // namespace

Embeddings::Embeddings(std::vector<float> values, int width, int columns, bool together)
    : values_(std::move(values)),
      width_(width),
      columns_(columns),
      together_(together),
      digest_(digest_of(values_, width, columns, together)) {}

Result<EmbeddingsPtr> Embeddings::create(std::vector<float> values, int width, int columns, bool together) {
  if (width < 1 || values.empty() || values.size() % size_t(width) || values.size() / size_t(width) > 1 << 24)
    return Error{Code::Usage,
                 format("{} numbers are not a whole number of embeddings of width {}", values.size(), width),
                 ""};
  const size_t rows = values.size() / size_t(width);
  if (columns < 0 || (columns > 0 && rows % size_t(columns)))
    return Error{Code::Usage,
                 format("{} embeddings are not a whole number of lines of {} columns", rows, columns), ""};
  for (size_t i = 0; i < values.size(); i++)
    if (!std::isfinite(values[i]))
      return Error{Code::Usage,
                   format("number {} of embedding {} is not finite", i % size_t(width), i / size_t(width)),
                   ""};
  return EmbeddingsPtr(new Embeddings(std::move(values), width, columns, together));
}

bool InputItem::operator==(const InputItem& o) const {
  if (token != o.token) return false;
  if (token != kNoToken) return true;
  return of && o.of && row == o.row && (*of == *o.of || (*of)->digest() == (*o.of)->digest());
}

InputItem InputView::operator[](size_t i) const {
  const int32_t token = tokens_[i];
  if (token != kNoToken) return {token};
  const int position = begin_ + int(i);
  const EmbeddingSpan* s = span_at(embeddings_, position);
  if (!s) return {token};
  return {token, &s->of, s->first + position - s->position};
}

int whole_rows(const InputView& text, size_t at, int rows) {
  const size_t end = std::min(text.size(), at + size_t(std::max(0, rows)));
  if (end == text.size() || end <= at) return int(end - std::min(at, end));
  const InputItem next = text[end];
  if (!next.of || !(*next.of)->together()) return int(end - at);
  const size_t begin = end - std::min(end, size_t(next.row));  // of the embeddings that `next` is in
  return begin > at ? int(begin - at) : 0;
}

Error too_long_for_a_step(const InputView& text, size_t at, int batch) {
  const InputItem item = text[at];
  return {Code::Usage,
          format("a picture of {} rows must be in one step, because its rows see each other; a batch has {}",
                 item.of ? (*item.of)->rows() : 0, batch),
          format("use a 'batch' of {} or more", item.of ? (*item.of)->rows() : 0), reason::kOutOfRange,
          "batch"};
}

size_t common_prefix(const InputView& a, const InputView& b) {
  if (!std::ranges::equal(a.adapters(), b.adapters())) return 0;
  const auto x = a.tokens(), y = b.tokens();
  const size_t n = std::min(x.size(), y.size());
  for (size_t i = 0;; i++) {
    const auto same = [](int32_t p, int32_t q) { return p == q && p != kNoToken; };
    i = size_t(
        std::mismatch(x.begin() + ptrdiff_t(i), x.begin() + ptrdiff_t(n), y.begin() + ptrdiff_t(i), same)
            .first -
        x.begin());
    if (i == n || !(a[i] == b[i])) return i;
  }
}

Status check_input(const InputItem& item, int vocabulary, int width) {
  if (!item.of && item.token >= 0 && item.token < vocabulary) return Done{};
  if (!item.of)
    return Error{Code::Usage,
                 format("token {} is not in the model's vocabulary (0 to {})", item.token, vocabulary - 1),
                 ""};
  if (width == 0)
    return Error{Code::Usage, "the text has an embedding, but the model was loaded for tokens", ""};
  const Embeddings& e = **item.of;
  if (item.token != kNoToken || e.width() != width || item.row < 0 || item.row >= e.rows())
    return Error{Code::Usage,
                 format("embedding {} of {}, with a width of {} and the token {}, does not fit: the model's "
                        "width is {}, and the token of an embedding is {}",
                        item.row, e.rows(), e.width(), item.token, width, kNoToken),
                 ""};
  return Done{};
}

Status check_inputs(const InputView& inputs, int vocabulary, int width) {
  for (size_t i = 0; i < inputs.size(); i++)
    if (auto ok = check_input(inputs[i], vocabulary, width); !ok) return ok;
  return Done{};
}

Status check_adapters(std::span<const float> scales, size_t adapters) {
  if (!scales.empty() && scales.size() != adapters)
    return Error{Code::Usage,
                 format("there are scales for {} LoRA adapters, but the model was loaded with {}",
                        scales.size(), adapters),
                 "give one scale for each adapter, or none", reason::kOutOfRange, "adapters"};
  for (float s : scales)
    if (!std::isfinite(s))
      return Error{Code::Usage, format("the scale of a LoRA adapter is {}: expected a finite number", s), "",
                   reason::kOutOfRange, "adapters"};
  return Done{};
}

void Inputs::assign(const Inputs& from) {
  tokens_.assign(from.tokens_.begin(), from.tokens_.end());
  embeddings_ = from.embeddings_, adapters_ = from.adapters_;
}

void Inputs::push(const InputItem& item) {
  if (item.of) {
    EmbeddingSpan* last = embeddings_.empty() ? nullptr : &embeddings_.back();
    const auto position = int(size());
    if (last && last->of == *item.of && last->position + last->rows == position &&
        last->first + last->rows == item.row)
      last->rows++;
    else embeddings_.push_back({position, *item.of, item.row, 1});
  }
  tokens_.push_back(item.token);
}

void Inputs::append(const InputView& more) {
  reserve(size() + more.size());
  for (size_t i = 0; i < more.size(); i++) push(more[i]);
}

void Inputs::resize(size_t shorter) {
  tokens_.resize(shorter);
  while (!embeddings_.empty()) {
    EmbeddingSpan& last = embeddings_.back();
    last.rows = std::min(last.rows, int(shorter) - last.position);
    if (last.rows > 0) return;
    embeddings_.pop_back();
  }
}

void Inputs::set(size_t i, const InputItem& item) {
  if (i == size()) return push(item);
  if (tokens_[i] != kNoToken && item.token != kNoToken) {
    tokens_[i] = item.token;
  } else if (!((*this)[i] == item)) {
    const EmbeddingsPtr keep = item.of ? *item.of : nullptr;  // it may be its own
    resize(i);
    push({item.token, keep ? &keep : nullptr, item.row});
  }
}

RopePositions::RopePositions(const InputView& before) {
  const auto size = int(before.size());
  int at = 0;
  for (const EmbeddingSpan& s : before.embeddings()) {
    if (s.position >= size) break;
    const int rows = std::min(s.rows, size - s.position);
    next_ += s.position - at;
    if (s.position > at) grid_ = nullptr;
    at = s.position + rows;
    if (s.of->columns()) {
      add({kNoToken, &s.of, s.first});
      row_ = s.first + rows - 1;
    } else {
      next_ += rows;
      grid_ = nullptr;
    }
  }
  next_ += size - at;
  if (size > at) grid_ = nullptr;
}

RopePosition RopePositions::add(const InputItem& item) {
  const Embeddings* of = item.of ? item.of->get() : nullptr;
  if (!of || !of->columns()) {
    grid_ = nullptr;
    const int place = next_++;
    return {place, place, place};
  }
  const int columns = of->columns();
  const bool same = grid_ && (grid_ == of || grid_->digest() == of->digest());
  if (!same || item.row != row_ + 1) {
    begin_ = next_;
    next_ += std::max(columns, of->rows() / columns);
  }
  grid_ = of, row_ = item.row;
  return {begin_, begin_ + item.row / columns, begin_ + item.row % columns};
}

}  // namespace gimbal
