#include "grammar/schema_strings.h"

#include <algorithm>

#include "base/format.h"
#include "grammar/interner.h"

namespace gimbal {
namespace {

struct Format {
  const char *name, *pattern;
};

// Exact calendars and clocks. RFC 3339 also allows a 60th second, which few programs read.
#define GIMBAL_DATE                                                                                         \
  "(([1-9]\\d{3}|0[1-9]\\d{2}|00[1-9]\\d|000[1-9])-((0[13578]|1[02])-(0[1-9]|[12]\\d|3[01])|(0[469]|11)-"   \
  "(0[1-9]|[12]\\d|30)|02-(0[1-9]|1\\d|2[0-8]))|(\\d\\d(0[48]|[2468][048]|[13579][26])|(0[48]|[2468][048]|" \
  "[13579][26])00)-02-29)"
#define GIMBAL_TIME "([01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(\\.\\d{1,6})?(Z|[+-]([01]\\d|2[0-3]):[0-5]\\d)"
#define GIMBAL_BYTE "(\\d|[1-9]\\d|1\\d\\d|2[0-4]\\d|25[0-5])"
// Names of hosts: labels of up to 63 characters (RFC 1123). Three of them may be as long as that, and three
// more follow with up to 19, so that the whole keeps to 253.
#define GIMBAL_LABEL "[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
#define GIMBAL_SHORT_LABEL "[a-zA-Z0-9]([a-zA-Z0-9-]{0,17}[a-zA-Z0-9])?"
#define GIMBAL_MORE_LABELS "(\\." GIMBAL_SHORT_LABEL "){0,3}"
// The name before the @ (RFC 5321: up to 64 characters): one part, two, or parts with dots of 32 characters.
#define GIMBAL_ATOM "[a-zA-Z0-9!#$%&'*+/=?^_`{|}~-]"
#define GIMBAL_MAILBOX                                                                                    \
  "(" GIMBAL_ATOM "{1,64}|" GIMBAL_ATOM "{1,31}\\." GIMBAL_ATOM "{1,32}|" GIMBAL_ATOM "(\\.?" GIMBAL_ATOM \
  "){0,31})"
// RFC 4291, section 2.2.
#define GIMBAL_IPV4 "(" GIMBAL_BYTE "\\.){3}" GIMBAL_BYTE
#define GIMBAL_H "[0-9a-fA-F]{1,4}"
#define GIMBAL_IPV6                                                                                         \
  "((" GIMBAL_H ":){7}" GIMBAL_H "|(" GIMBAL_H ":){1,7}:|(" GIMBAL_H ":){1,6}:" GIMBAL_H "|(" GIMBAL_H      \
  ":){1,5}(:" GIMBAL_H "){2}|(" GIMBAL_H ":){1,4}(:" GIMBAL_H "){3}|(" GIMBAL_H ":){1,3}(:" GIMBAL_H        \
  "){4}|(" GIMBAL_H ":){1,2}(:" GIMBAL_H "){5}|" GIMBAL_H ":(:" GIMBAL_H "){6}|:(:" GIMBAL_H                \
  "){1,7}|::|(" GIMBAL_H ":){6}" GIMBAL_IPV4 "|::(" GIMBAL_H ":){0,5}" GIMBAL_IPV4 "|" GIMBAL_H             \
  "::(" GIMBAL_H ":){0,4}" GIMBAL_IPV4 "|(" GIMBAL_H ":){2}:(" GIMBAL_H ":){0,3}" GIMBAL_IPV4 "|(" GIMBAL_H \
  ":){3}:(" GIMBAL_H ":){0,2}" GIMBAL_IPV4 "|(" GIMBAL_H ":){4}:(" GIMBAL_H ":)?" GIMBAL_IPV4 "|(" GIMBAL_H \
  ":){5}:" GIMBAL_IPV4 ")"
// RFC 3986, appendix A.
#define GIMBAL_ESCAPE "%[0-9a-fA-F]{2}"
#define GIMBAL_PATH_CHAR "([a-zA-Z0-9._~!$&'()*+,;=:@-]|" GIMBAL_ESCAPE ")"
#define GIMBAL_AUTHORITY                                                 \
  "(([a-zA-Z0-9._~!$&'()*+,;=:-]|" GIMBAL_ESCAPE ")*@)?(\\[" GIMBAL_IPV6 \
  "\\]|([a-zA-Z0-9._~!$&'()*+,;=-]|" GIMBAL_ESCAPE ")*)(:\\d*)?"
#define GIMBAL_ROOTLESS GIMBAL_PATH_CHAR "+(/" GIMBAL_PATH_CHAR "*)*"
#define GIMBAL_QUERY "(\\?(" GIMBAL_PATH_CHAR "|[/?])*)?(#(" GIMBAL_PATH_CHAR "|[/?])*)?"
// RFC 3339, appendix A.
#define GIMBAL_COUNT "\\d{1,9}"
#define GIMBAL_CLOCK                                                                            \
  "T(" GIMBAL_COUNT "H(" GIMBAL_COUNT "M(" GIMBAL_COUNT "S)?)?|" GIMBAL_COUNT "M(" GIMBAL_COUNT \
  "S)?|" GIMBAL_COUNT "S)"
#define GIMBAL_DAYS                                                                            \
  "(" GIMBAL_COUNT "Y(" GIMBAL_COUNT "M(" GIMBAL_COUNT "D)?)?|" GIMBAL_COUNT "M(" GIMBAL_COUNT \
  "D)?|" GIMBAL_COUNT "D)"

constexpr Format kFormats[] = {
    {"date", "^" GIMBAL_DATE "$"},
    {"time", "^" GIMBAL_TIME "$"},
    {"date-time", "^" GIMBAL_DATE "T" GIMBAL_TIME "$"},
    {"duration", "^P(" GIMBAL_DAYS "(" GIMBAL_CLOCK ")?|" GIMBAL_CLOCK "|" GIMBAL_COUNT "W)$"},
    {"uuid", "^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$"},
    {"ipv4", "^" GIMBAL_IPV4 "$"},
    {"ipv6", "^" GIMBAL_IPV6 "$"},
    {"hostname", "^" GIMBAL_LABEL "(\\." GIMBAL_LABEL "){0,2}" GIMBAL_MORE_LABELS "$"},
    {"email", "^" GIMBAL_MAILBOX "@" GIMBAL_LABEL "(\\." GIMBAL_LABEL "){1,2}" GIMBAL_MORE_LABELS "$"},
    {"uri", "^[a-zA-Z][a-zA-Z0-9+.-]*:(//" GIMBAL_AUTHORITY "(/" GIMBAL_PATH_CHAR "*)*|/(" GIMBAL_ROOTLESS
            ")?|(" GIMBAL_ROOTLESS ")?)" GIMBAL_QUERY "$"},
};

Grammar::Id json_spelling(Grammar& g, std::span<const CharRange> chars) {
  static constexpr CharRange kRaw[] = {{0x20, 0x21}, {0x23, 0x5b}, {0x5d, kLastChar}};
  static constexpr CharRange kEscaped[] = {{0, 0x1f}, {'"', '"'}, {'\\', '\\'}};
  std::vector<Grammar::Id> all;
  if (const auto raw = intersection(chars, kRaw); !raw.empty()) all.push_back(g.chars(raw));
  for (const CharRange& r : intersection(chars, kEscaped))
    for (uint32_t c = r.low; c <= r.high; c++) {
      const size_t known = std::string_view("\"\\\b\f\n\r\t").find(char(c));
      all.push_back(g.text(known < 7 ? format("\\{}", "\"\\bfnrt"[known]) : format("\\u{:04x}", c)));
    }
  return g.choice(all);
}

}  // namespace

const char* pattern_of_format(std::string_view name) {
  for (const Format& f : kFormats)
    if (name == f.name) return f.pattern;
  return nullptr;
}

Result<CharMachine> StringRules::machine() const {
  auto all = CharMachine::pattern(patterns.empty() ? "" : patterns.front());
  auto narrow = [&](Result<CharMachine> with) {
    if (all && with) all = all->both(*with);
    else if (!with) all = with.error();
  };
  for (size_t i = 1; i < patterns.size() && all; i++) narrow(CharMachine::pattern(patterns[i]));
  for (size_t i = 0; i < other_patterns.size() && all; i++) {
    const auto one = CharMachine::pattern(other_patterns[i]);
    narrow(one ? Result<CharMachine>(one->complement()) : one);
  }
  if (!other_texts.empty()) narrow(CharMachine::except(other_texts));
  return all ? all->of_length(min, max) : all;
}

// An escape of half a surrogate pair is no character.
Grammar::Id any_string_char(Grammar& g) {
  auto hex = [&](uint32_t times) {
    return g.repeat(g.chars({{'0', '9'}, {'A', 'F'}, {'a', 'f'}}), times, times);
  };
  const Grammar::Id d = g.chars({{'D', 'D'}, {'d', 'd'}});
  const Grammar::Id unit =
      g.choice({g.sequence({g.chars({{'0', '9'}, {'A', 'C'}, {'E', 'F'}, {'a', 'c'}, {'e', 'f'}}), hex(3)}),
                g.sequence({d, g.chars({{'0', '7'}}), hex(2)}),
                g.sequence({d, g.chars({{'8', '9'}, {'A', 'B'}, {'a', 'b'}}), hex(2), g.text("\\u"), d,
                            g.chars({{'C', 'F'}, {'c', 'f'}}), hex(2)})});
  return g.choice({g.chars({{0x20, 0x21}, {0x23, 0x5b}, {0x5d, kLastChar}}),
                   g.sequence({g.text("\\"), g.choice({g.chars({{'"', '"'},
                                                                {'\\', '\\'},
                                                                {'/', '/'},
                                                                {'b', 'b'},
                                                                {'f', 'f'},
                                                                {'n', 'n'},
                                                                {'r', 'r'},
                                                                {'t', 't'}}),
                                                       g.sequence({g.text("u"), unit})})})});
}

// A rule for each state: as they end with each other, no stack is needed for them. And one for each set of
// characters: many states read the same.
Grammar::Id text_of(Grammar& g, const CharMachine& machine) {
  if (machine.empty()) return g.never();
  std::vector<Grammar::Id> rules;
  for (size_t s = 0; s < machine.states().size(); s++) rules.push_back(g.add_rule("a pattern"));
  Interner sets;
  std::vector<Grammar::Id> spelled;  // by set
  const auto spelling = [&](std::vector<CharRange> chars) {
    std::vector<uint32_t> list;
    for (const CharRange& r : chars) list.insert(list.end(), {r.low, r.high});
    const uint32_t set = sets.number(list);
    if (set == spelled.size()) {
      const uint32_t rule = g.add_rule("characters");
      g.define(rule, json_spelling(g, chars));
      spelled.push_back(g.rule(rule));
    }
    return spelled[set];
  };
  for (size_t s = 0; s < machine.states().size(); s++) {
    const CharMachine::State& state = machine.states()[s];
    std::vector<uint32_t> targets;
    for (const auto& arc : state.arcs) targets.push_back(arc.to);
    std::sort(targets.begin(), targets.end());
    targets.erase(std::unique(targets.begin(), targets.end()), targets.end());
    std::vector<Grammar::Id> ways;
    if (state.accepts) ways.push_back(g.nothing());
    for (uint32_t to : targets) {
      std::vector<CharRange> chars;
      for (const auto& arc : state.arcs)
        if (arc.to == to) chars.push_back(arc.chars);
      ways.push_back(g.sequence({spelling(sorted(std::move(chars))), g.rule(rules[to])}));
    }
    g.define(rules[s], g.choice(ways));
    if (g.too_large()) break;
  }
  return g.rule(rules[0]);
}

Grammar::Id string_of(Grammar& g, const CharMachine& machine) {
  if (machine.empty()) return g.never();
  return g.sequence({g.text("\""), text_of(g, machine), g.text("\"")});
}

}  // namespace gimbal
