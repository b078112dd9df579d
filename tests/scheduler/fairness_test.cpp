// Equal shares: the queue of clients, which request gives up its place, and when none does.
#include <set>

#include "scheduler/desk.h"

namespace gimbal::test {
namespace {

class ClientQueue : public testing::Test {
 protected:
  uint64_t add(const std::string& client) {
    GenerationRequest r;
    r.prompt = {1, 2}, r.max_tokens = 1, r.client = client;
    queue_.add(std::make_unique<ScheduledRequest>(++ids_, std::move(r), sink_of(heard_, 0, {}),
                                                  any_tokenizer(), 64));
    return ids_;
  }
  std::unique_ptr<ScheduledRequest> take_next() {
    ScheduledRequest* const g = queue_.next([](ScheduledRequest&) { return true; });
    return g ? queue_.take(*g) : nullptr;
  }
  uint64_t next_id() const {
    return queue_.next([](ScheduledRequest&) { return true; })->id;
  }

  Heard heard_;
  uint64_t ids_ = 0;
  FairQueue queue_;
};

TEST_F(ClientQueue, ARequestThatGaveUpItsPlaceIsFirstAgain) {
  const uint64_t first = add("a"), second = add("a");
  auto g = take_next();
  ASSERT_EQ(g->id, first);
  queue_.put_back(std::move(g));
  EXPECT_EQ(queue_.waiting(), 2);
  EXPECT_EQ(take_next()->id, first);
  EXPECT_EQ(take_next()->id, second);
}

// Shares are divided among clients with requests.
TEST_F(ClientQueue, AClientWithoutRequestsIsForgotten) {
  add("a");
  const uint64_t removed = add("b");
  EXPECT_EQ(queue_.clients(), 2);
  EXPECT_TRUE(queue_.remove(removed));
  EXPECT_EQ(queue_.clients(), 1);
  const auto g = take_next();
  EXPECT_EQ(queue_.clients(), 1) << "its request runs";
  queue_.ended(*g->client);
  EXPECT_EQ(queue_.clients(), 0);
}

TEST_F(ClientQueue, TheNextIsOfTheClientWithTheFewestPlacesThenRowsThenTheOldest) {
  const uint64_t a1 = add("a"), b1 = add("b");
  add("a"), add("b");
  const auto first = take_next();
  EXPECT_EQ(first->id, a1) << "equal clients: the oldest request";
  first->client->served = 10;
  auto second = take_next();
  EXPECT_EQ(second->id, b1) << "a runs one, b none";
  second->client->served = 11;
  EXPECT_EQ(next_id(), 3u) << "one each: a had fewer rows";
  second->client->served = 9;
  EXPECT_EQ(next_id(), 4u);
  second->client->served = 10;
  EXPECT_EQ(next_id(), 3u) << "as many: the oldest";
  Client& b = *second->client;
  queue_.ended(b);
  b.served = 1000;
  EXPECT_EQ(next_id(), 4u) << "places count before rows";
}

TEST_F(ClientQueue, ANewClientBeginsWithTheFewestRowsOfAll) {
  add("a"), add("b");
  const auto a = take_next(), b = take_next();
  EXPECT_EQ(a->client->served, 0u) << "the first";
  EXPECT_EQ(b->client->served, 0u);
  a->client->served = 500, b->client->served = 70;
  add("c"), add("a");
  const auto c = take_next();
  EXPECT_EQ(c->client->name, "c");
  EXPECT_EQ(c->client->served, 70u);
  EXPECT_EQ(a->client->served, 500u) << "it was there already";
}

TEST_F(ClientQueue, OnlyTheOldestOfAClientMayBeNext) {
  const uint64_t first = add("a");
  add("a");
  const uint64_t other = add("b");
  const auto next = [&](uint64_t refused) {
    ScheduledRequest* const g = queue_.next([&](ScheduledRequest& one) { return one.id != refused; });
    return g ? g->id : 0;
  };
  EXPECT_EQ(next(0), first);
  EXPECT_EQ(next(first), other) << "not the second of the client whose first waits";
  EXPECT_EQ(next(other), first);
  EXPECT_EQ(queue_.next([](ScheduledRequest&) { return false; }), nullptr);
}

TEST_F(ClientQueue, RemovesOneFromTheMiddleAndAllOneByOne) {
  const uint64_t first = add("a"), second = add("a"), third = add("a"), other = add("b");
  EXPECT_EQ(queue_.remove(99), nullptr);
  EXPECT_EQ(queue_.waiting(), 4);
  EXPECT_EQ(queue_.remove(second)->id, second);
  EXPECT_EQ(queue_.waiting(), 3);
  const auto running = take_next();
  EXPECT_EQ(queue_.remove(running->id), nullptr) << "it runs";
  std::set<uint64_t> left;
  while (auto g = queue_.remove_any()) left.insert(g->id);
  EXPECT_EQ(left, (std::set<uint64_t>{third, other}));
  EXPECT_EQ(running->id, first);
  EXPECT_EQ(queue_.waiting(), 0);
  EXPECT_EQ(queue_.clients(), 1) << "one runs";
}

TEST_F(ClientQueue, KnowsTheClientWithTheMostPlaces) {
  EXPECT_EQ(queue_.most_running(), nullptr);
  add("a"), add("b"), add("b");
  std::vector<std::unique_ptr<ScheduledRequest>> running;
  for (int i = 0; i < 3; i++) running.push_back(take_next());
  EXPECT_EQ(queue_.most_running()->name, "b");
  EXPECT_EQ(queue_.most_running()->running, 2);
  queue_.put_back(std::move(running[2]));
  EXPECT_EQ(queue_.most_running()->running, 1);
}

TEST(Fairness, TheYoungestRequestGivesUpItsPlace) {
  Desk d(serving_run(256, 4, 8));
  std::vector<size_t> many;
  for (int i = 0; i < 4; i++) many.push_back(d.ask(text(10 + i, 10 + i), 100, "many"));
  for (int i = 0; i < 5; i++) d.step();
  d.ask(text(12, 40), 60, "few"), d.ask(text(12, 41), 60, "few");
  d.step(), d.step();
  ASSERT_EQ(d.numbers().preemptions, 2u);
  std::vector<size_t> before;
  for (const size_t id : many) before.push_back(d.told(id));
  for (int i = 0; i < 5; i++) d.step();
  for (size_t i = 0; i < many.size(); i++) EXPECT_EQ(d.told(many[i]) > before[i], i < 2) << i;
  d.finish();
}

// With more clients than places, one place is a client's share.
TEST(Fairness, NoClientLosesItsOnlyPlace) {
  Desk d(serving_run(256, 4, 8));
  for (const char* client : {"a", "b", "c", "d"}) d.ask(text(10, client[0]), 40, client);
  for (int i = 0; i < 3; i++) d.step();
  const size_t fifth = d.ask(text(10, 1), 5, "e");
  for (int i = 0; i < 10; i++) d.step();
  EXPECT_EQ(d.told(fifth), 0u);
  d.finish();
  EXPECT_EQ(d.numbers().preemptions, 0u);
  EXPECT_EQ(d.told(fifth), 5u);
}

// Rows count, not steps: a prompt is more than a stream of as many steps.
TEST(Fairness, AStreamCostsLessThanAPrompt) {
  Desk d(serving_run(512, 4, 6));
  d.ask(text(4, 9), 300, "streams");
  for (int i = 0; i < 20; i++) d.step();
  const size_t lng = d.ask(text(480, 3), 10, "prompts");
  for (int i = 0; i < 3; i++) d.step();
  const size_t brief = d.ask(text(20, 4), 10, "streams");
  for (int i = 0; i < 3; i++) d.step();
  EXPECT_GT(d.told(brief), 0u) << "its client had fewer rows";
  EXPECT_EQ(d.told(lng), 0u);
  d.finish();
}

// Fewer than 16 tokens are computed again: that is faster than a copy of their page.
TEST(Fairness, ShortBeginningsAreNotShared) {
  for (const int common : {15, 16}) {
    Desk d(serving_run(256, 4, 8));
    const auto whole = text(40, 1);
    d.ask(whole, 1), d.finish();
    std::vector<Token> other(whole.begin(), whole.begin() + common);
    other.push_back(Token(whole[size_t(common)] + 1)), other.push_back(7);
    const size_t id = d.ask(other, 1);
    d.finish();
    EXPECT_EQ(d.heard(id).end->shared_tokens, common == 16 ? 16 : 0);
  }
}

// Pages of a text that is kept, but does not run, take room as new ones do.
TEST(Fairness, AKeptBeginningNeedsRoomToo) {
  Desk d(serving_run(512, 4, 6, 64 * 8));
  const auto kept = text(130, 9);
  d.ask(kept, 1), d.finish();
  for (int i = 0; i < 2; i++) d.ask(text(100, i), 60);  // two pages each, soon three
  for (int i = 0; i < 20; i++) d.step();
  const size_t late = d.ask(kept, 30);
  d.finish();
  EXPECT_EQ(d.numbers().preemptions, 0u);
  EXPECT_EQ(d.told(late), 30u);
}

}  // namespace
}  // namespace gimbal::test
