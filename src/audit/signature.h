// Signatures of certificates: Ed25519 (RFC 8032) by OpenSSL 3, which is opened when it is needed.
#pragma once
#include "audit/certificate.h"

namespace gimbal {

// Signs the canonical text with the private key in this PEM file (`openssl genpkey -algorithm ed25519`).
// Errors: Unsupported without OpenSSL; Usage for a file that cannot be read or holds another kind of key.
Status sign(Certificate&, const std::string& key_file);
// Whether the signature is of its key and of this content. Errors: Unsupported without OpenSSL.
Result<bool> signature_fits(const Certificate&);

}  // namespace gimbal
