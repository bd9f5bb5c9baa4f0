/* Linked into the published program, which is static (`cargo xtask dist`).
 *
 * glibc looks names up as /etc/nsswitch.conf of the machine says, and loads a library for each service that it does not
 * have itself (sss, resolve, mdns4_minimal, ...). Such a library belongs to the machine's own glibc. So the program uses
 * only the two services that are part of glibc since 2.34: /etc/hosts and DNS, as /etc/resolv.conf says. */
#include <nss.h>

__attribute__((constructor)) static void names(void) {
    __nss_configure_lookup("hosts", "files dns");
    __nss_configure_lookup("passwd", "files");
}
