// libcurl, loaded on the first download. The program starts without it, also on machines that do not have
// it.
#pragma once
// Older libraries only know the old names of two options.
#define CURL_DISABLE_DEPRECATION
#include <curl/curl.h>

#include <string>

#include "base/result.h"

namespace gimbal {

struct Curl {
  // The process's only instance, never freed; thread-safe. Errors: Unsupported, with a package to install.
  static Result<const Curl*> open();

  decltype(&curl_easy_init) init;
  decltype(&curl_easy_cleanup) cleanup;
  decltype(&curl_easy_setopt) set;
  decltype(&curl_easy_perform) perform;
  decltype(&curl_easy_send) send;
  decltype(&curl_easy_recv) receive;
  decltype(&curl_easy_getinfo) info;
  decltype(&curl_easy_reset) reset;
  decltype(&curl_easy_strerror) error_text;
  decltype(&curl_slist_append) append;
  decltype(&curl_slist_free_all) free_list;
  decltype(&curl_multi_init) multi_init;
  decltype(&curl_multi_cleanup) multi_cleanup;
  decltype(&curl_multi_add_handle) multi_add;
  decltype(&curl_multi_remove_handle) multi_remove;
  decltype(&curl_multi_perform) multi_perform;
  decltype(&curl_multi_poll) multi_poll;
  decltype(&curl_multi_info_read) multi_read;
};

// The headers of a request.
class HeaderList {
 public:
  explicit HeaderList(const Curl& curl) : curl_(curl) {}
  HeaderList(const HeaderList&) = delete;
  ~HeaderList() { curl_.free_list(list_); }
  void add(const std::string& line) { list_ = curl_.append(list_, line.c_str()); }
  curl_slist* get() const { return list_; }

 private:
  const Curl& curl_;
  curl_slist* list_ = nullptr;
};

}  // namespace gimbal
