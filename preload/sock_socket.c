#include "sock_socket.h"

#include "real.h"

#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>

#define STATE_CLOSED 7 /* TCP_CLOSE, in a header that goes with no other of TCP's */

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

bool sock_socket_is_over(int fd)
{
    struct tcp_info info = {.tcpi_state = 0};
    socklen_t size = sizeof info;

    return real_sock()->getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 &&
           info.tcpi_state == STATE_CLOSED &&
           size >= offsetof(struct tcp_info, tcpi_data_segs_out) + sizeof info.tcpi_data_segs_out &&
           info.tcpi_data_segs_out > 0 && /* a fresh one is closed, too */
           sock_socket_unread(fd) == 0;
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

#define NS_PER_MS UINT64_C(1000000)
/* Segments that a peer may send before it hears of the first (RFC 6928). With more of them there it
 * has been sending for a while. */
#define FIRST_FLIGHT 10

static uint64_t came_ns(const struct tcp_info *info, uint64_t seen)
{
    uint64_t first_flight = (uint64_t)FIRST_FLIGHT * info->tcpi_rcv_mss;

    return info->tcpi_bytes_received > seen + first_flight ? UINT64_MAX
                                                           : info->tcpi_last_data_recv * NS_PER_MS;
}

/* What is sent again is sent, too, but left before. */
static uint64_t left_ns(const struct tcp_info *info)
{
    return info->tcpi_notsent_bytes > 0 ? 0
           : info->tcpi_retransmits > 0 ? UINT64_MAX
                                        : info->tcpi_last_data_sent * NS_PER_MS;
}

struct sock_lull sock_socket_lull(int fd, uint64_t seen)
{
    struct tcp_info info = {.tcpi_state = 0};
    socklen_t size = sizeof info;

    if (real_sock()->getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0 ||
        size <
            offsetof(struct tcp_info, tcpi_min_rtt)) /* what stands before it is all that we ask */
        return (struct sock_lull){.left_ns = UINT64_MAX};
    return (struct sock_lull){came_ns(&info, seen), left_ns(&info)};
}
