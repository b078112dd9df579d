// Serves a folder of pages to one process that may open no files. The process names pages by their keys, and
// gets the open file of a page; it sends the content of new pages. Nothing that it sends leads out of the
// folder: a file's name is a hash of the key.
#pragma once
#include <memory>
#include <thread>

#include "store/page_folder.h"
#include "store/page_store.h"

namespace gimbal {

class PageServer {
 public:
  // A socket of page_socket.h, which it closes. `store`: of a PageFolder; gets the numbers of the process,
  // too.
  PageServer(int socket, std::shared_ptr<PageStore> store);
  PageServer(const PageServer&) = delete;
  ~PageServer();  // waits for the request in progress

 private:
  void run();
  bool serve_one();

  const int socket_;
  const std::shared_ptr<PageStore> store_;
  PageFolder& folder_;
  PageStoreNumbers counted_;
  std::thread thread_;
};

}  // namespace gimbal
