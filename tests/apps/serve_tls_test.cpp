// gimbal serve with TLS; the client is Python's.
#include <fstream>

#include "support/serving.h"

namespace gimbal::test {
namespace {

std::string tls_file(const std::string& name) {
  return std::string(GIMBAL_SOURCE_DIR) + "/tests/apps/tls/" + name;
}

std::string file_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(ServeTls, WhatAClientGets) {
  const Serving s({"--tls-cert", tls_file("cert.pem"), "--tls-key", tls_file("key.pem"), "--header-timeout",
                   "1", "--quiet"});
  ASSERT_GT(s.port, 0);
  const Ran client =
      run_program({"/usr/bin/env", "python3", std::string(GIMBAL_SOURCE_DIR) + "/tests/apps/tls_client.py",
                   std::to_string(s.port), tls_file("cert.pem"), s.model});
  EXPECT_EQ(client.code, 0) << client.out << client.err;
  EXPECT_EQ(client.out, "ok\n");
}

// Whether a client that trusts `certificate` alone is answered.
bool answered(const Serving& s, const std::string& certificate) {
  const std::string client =
      "import ssl, sys, urllib.request as u; print(u.urlopen(sys.argv[1], context=ssl."
      "create_default_context(cafile=sys.argv[2]), timeout=60).status)";
  const Ran r = run_program({"/usr/bin/env", "python3", "-c", client,
                             "https://localhost:" + std::to_string(s.port) + "/health/live", certificate});
  if (r.code != 0) { EXPECT_SAYS(r.err, "CERTIFICATE_VERIFY_FAILED"); }
  return r.code == 0 && r.out == "200\n";
}

// SIGHUP, and when the server has said what came of it.
void hang_up(const Serving& s, const std::string& log, const std::string& expected) {
  ASSERT_TRUE(send_signal(s.pid(), SIGHUP));
  for (int i = 0; i < 6000 && file_text(log).find(expected) == std::string::npos; i++)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_SAYS(file_text(log), expected);
}

TEST(ServeTls, ACertificateIsRenewedWhileItServes) {
  const std::string cert = temporary_path("cert.pem"), key = temporary_path("key.pem"),
                    log = temporary_path("renewed.log");
  const auto use = [&](const std::string& c, const std::string& k) {
    const auto over = std::filesystem::copy_options::overwrite_existing;
    std::filesystem::copy_file(tls_file(c), cert, over), std::filesystem::copy_file(tls_file(k), key, over);
  };
  use("cert.pem", "key.pem");
  Serving s({"--tls-cert", cert, "--tls-key", key}, {}, log);
  ASSERT_GT(s.port, 0);
  EXPECT_TRUE(answered(s, tls_file("cert.pem")));
  EXPECT_FALSE(answered(s, tls_file("other-cert.pem")));

  use("other-cert.pem", "other-key.pem");
  EXPECT_TRUE(answered(s, tls_file("cert.pem"))) << "the server has not been told to reload the files";
  hang_up(s, log, "the certificate was reloaded");
  EXPECT_TRUE(answered(s, tls_file("other-cert.pem")));
  EXPECT_FALSE(answered(s, tls_file("cert.pem")));

  use("cert.pem", "other-key.pem");
  hang_up(s, log, "the old certificate stays in use: --tls-key: ");
  EXPECT_TRUE(answered(s, tls_file("other-cert.pem")));
  EXPECT_EQ(s.end(SIGTERM), 0);
}

TEST(ServeTls, WhatCannotBe) {
  const std::string cert = tls_file("cert.pem"), key = tls_file("key.pem");
  const auto with = [&](const std::string& c, const std::string& k) {
    return gimbal({"serve", "--port", "0", "--tls-cert", c, "--tls-key", k});
  };
  const Ran other = with(cert, tls_file("other-key.pem"));
  EXPECT_EQ(other.code, 2);
  EXPECT_SAYS(other.err, "--tls-key: ");
  EXPECT_SAYS(other.err, "mismatch");
  EXPECT_SAYS(with(cert, "/no/key").err, "No such file");
  EXPECT_SAYS(with(key, key).err, "--tls-cert: ");
  EXPECT_SAYS(with(cert, cert).err, "--tls-key: ");
  EXPECT_EQ(with(cert, tls_file("locked-key.pem")).code, 2);  // and prompts for no password
  EXPECT_SAYS(gimbal({"serve", "--tls-cert", cert}).err, "go together");
}

// The same program on a machine without OpenSSL: its name for the library is changed to one that is nowhere.
TEST(ServeTls, TheLibraryIsMissing) {
  std::string program = file_text(std::getenv("GIMBAL"));
  int found = 0;
  for (size_t at = 0; (at = program.find("libssl.so.3", at)) != program.npos; found++) program[at + 10] = '9';
  ASSERT_GE(found, 1);
  const std::string path = temporary_path("without-openssl");
  std::ofstream(path, std::ios::binary) << program;
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  const RunSetup setup{.environment = quiet_home()};
  const Ran r = run_program(
      {path, "serve", "--port", "0", "--tls-cert", tls_file("cert.pem"), "--tls-key", tls_file("key.pem")},
      setup);
  EXPECT_NE(r.code, 0);
  EXPECT_SAYS(r.err, "TLS needs OpenSSL 3: libssl.so.9 cannot be loaded");
  EXPECT_SAYS(r.err, "libssl3");
  EXPECT_EQ(run_program({path, "run", "-p", "a", "-n", "1", "--quiet"}, setup).code, 0);
}

}  // namespace
}  // namespace gimbal::test
