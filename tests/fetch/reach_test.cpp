// Which addresses are inside of a network, and from where a redirection may lead to them.
#include "fetch/reach.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>

namespace gimbal::test {
namespace {

Reach of_v6(const char* text) {
  sockaddr_in6 a{};
  a.sin6_family = AF_INET6;
  EXPECT_EQ(inet_pton(AF_INET6, text, &a.sin6_addr), 1) << text;
  return reach_of(reinterpret_cast<const sockaddr*>(&a));
}

TEST(Reach, Addresses) {
  const std::pair<const char*, Reach> all[] = {{"127.0.0.1", Reach::Loopback},
                                               {"127.255.0.1", Reach::Loopback},
                                               {"0.0.0.0", Reach::Loopback},
                                               {"localhost", Reach::Loopback},
                                               {"localhost:80", Reach::Loopback},
                                               {"a.localhost", Reach::Loopback},
                                               {"localhost.", Reach::Loopback},
                                               {"[::1]:8080", Reach::Loopback},
                                               {"[::]", Reach::Loopback},
                                               {"[::ffff:127.0.0.1]", Reach::Loopback},
                                               {"2130706433", Reach::Loopback},
                                               {"0x7f.1", Reach::Loopback},
                                               {"017700000001:80", Reach::Loopback},
                                               {"10.0.0.1", Reach::Private},
                                               {"172.16.0.1", Reach::Private},
                                               {"172.31.255.255", Reach::Private},
                                               {"172.32.0.1", Reach::Public},
                                               {"172.15.0.1", Reach::Public},
                                               {"192.168.0.1:80", Reach::Private},
                                               {"192.169.0.1", Reach::Public},
                                               {"100.64.0.1", Reach::Private},
                                               {"100.128.0.1", Reach::Public},
                                               {"[fd00::1]", Reach::Private},
                                               {"169.254.169.254", Reach::LinkLocal},
                                               {"2852039166", Reach::LinkLocal},
                                               {"[fe80::1%eth0]", Reach::LinkLocal},
                                               {"224.0.0.1", Reach::LinkLocal},
                                               {"255.255.255.255", Reach::LinkLocal},
                                               {"[ff02::1]", Reach::LinkLocal},
                                               {"[64:ff9b::a9fe:a9fe]", Reach::LinkLocal},
                                               {"[2002:7f00:1::]", Reach::Loopback},
                                               {"8.8.8.8", Reach::Public},
                                               {"[2606:4700::1]", Reach::Public},
                                               {"huggingface.co", Reach::Public},
                                               {"localhost.example", Reach::Public},
                                               {"11.0.0.1", Reach::Public}};
  for (const auto& [host, reach] : all) EXPECT_EQ(int(reach_of(std::string(host))), int(reach)) << host;
  EXPECT_EQ(of_v6("::1"), Reach::Loopback);
  EXPECT_EQ(of_v6("::ffff:10.1.2.3"), Reach::Private);
  EXPECT_EQ(of_v6("fec0::1"), Reach::Private);
  EXPECT_EQ(of_v6("2a00::1"), Reach::Public);
  sockaddr other{};
  other.sa_family = AF_UNIX;
  EXPECT_EQ(reach_of(&other), Reach::LinkLocal);
}

TEST(Reach, NothingLeadsInwards) {
  const Reach all[] = {Reach::Public, Reach::Private, Reach::Loopback, Reach::LinkLocal};
  // In the order of `all`: from, to.
  constexpr bool may[4][4] = {{true, false, false, false},
                              {true, true, false, false},
                              {true, true, true, false},
                              {true, false, false, true}};
  for (int from = 0; from < 4; from++)
    for (int to = 0; to < 4; to++)
      EXPECT_EQ(may_lead(all[from], all[to]), may[from][to]) << from << " to " << to;
}

TEST(Reach, TheUserMayNameAnything) {
  const Url inside = *Url::parse("http://169.254.169.254/x.gguf");
  EXPECT_FALSE(Way(inside, {}).refused);
  EXPECT_TRUE(Way(inside, Reach::Public).refused);
  EXPECT_TRUE(Way(inside, Reach::Loopback).refused);
  EXPECT_FALSE(Way(*Url::parse("http://example.org/"), Reach::Public).refused);
}

}  // namespace
}  // namespace gimbal::test
