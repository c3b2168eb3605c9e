#include "sock_socket.h"

#include "real.h"

#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>

static bool is_stream_socket(int fd)
{
    int type = 0;
    socklen_t size = sizeof type;

    return real_sock()->getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 &&
           type == SOCK_STREAM;
}

static bool is_any(const struct in6_addr *address)
{
    static const struct in6_addr any = IN6ADDR_ANY_INIT, mapped = {
                                                             .s6_addr = {[10] = 0xff, [11] = 0xff},
                                                         };

    return memcmp(address, &any, sizeof any) == 0 || memcmp(address, &mapped, sizeof mapped) == 0;
}

/* A connect to the unspecified address leads to this host. */
static bool same_address(const struct sockaddr_storage *wanted,
                         const struct sockaddr_storage *found)
{
    const struct sockaddr_in *four = (const void *)wanted, *found4 = (const void *)found;
    const struct sockaddr_in6 *six = (const void *)wanted, *found6 = (const void *)found;

    if (wanted->ss_family != found->ss_family)
        return false;
    if (wanted->ss_family == AF_INET)
        return four->sin_port == found4->sin_port &&
               (four->sin_addr.s_addr == found4->sin_addr.s_addr ||
                four->sin_addr.s_addr == htonl(INADDR_ANY));
    return six->sin6_port == found6->sin6_port &&
           (is_any(&six->sin6_addr) ||
            memcmp(&six->sin6_addr, &found6->sin6_addr, sizeof six->sin6_addr) == 0);
}

bool sock_socket_leads_to(int fd, const struct sockaddr_storage *peer)
{
    struct sockaddr_storage found = {.ss_family = AF_UNSPEC};
    socklen_t length = sizeof found;

    if (!is_stream_socket(fd))
        return false;
    if (real_sock()->getpeername(fd, (struct sockaddr *)&found, &length) != 0)
        return errno == ENOTCONN; /* not yet, or no more */
    return same_address(peer, &found);
}

bool sock_socket_has_peer(int fd)
{
    struct sockaddr_storage address;
    socklen_t length = sizeof address;

    return real_sock()->getpeername(fd, (struct sockaddr *)&address, &length) == 0;
}

int sock_socket_take_error(int fd)
{
    int error = 0;
    socklen_t size = sizeof error;

    return real_sock()->getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : 0;
}

uint64_t sock_socket_received(int fd)
{
    struct tcp_info info = {.tcpi_state = 0};
    socklen_t size = sizeof info;

    if (real_sock()->getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0 ||
        size < offsetof(struct tcp_info, tcpi_bytes_received) + sizeof info.tcpi_bytes_received)
        return 0;
    return info.tcpi_bytes_received;
}

uint64_t sock_socket_unread(int fd)
{
    int unread = 0;

    return ioctl(fd, FIONREAD, &unread) == 0 && unread > 0 ? (uint64_t)unread : 0;
}

uint64_t sock_socket_idle_ns(int fd)
{
    struct tcp_info info = {.tcpi_state = 0};
    socklen_t size = sizeof info;

    return real_sock()->getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 &&
                   size >= offsetof(struct tcp_info, tcpi_last_ack_recv)
               ? info.tcpi_last_data_recv * UINT64_C(1000000)
               : 0;
}
