/* The smallest preload there is: one constructor that does nothing. What process start with
 * libbreaker.so is compared with, since the loader's own work for one more object is not ours. */
__attribute__((constructor)) static void nothing(void)
{
    __asm__ volatile("");
}
