/* SPDX-License-Identifier: GPL-2.0 */
#ifndef GPUCR_RECOVER_H
#define GPUCR_RECOVER_H

struct gpucr_session;

int gpucr_recover_init(void);
void gpucr_recover_exit(void);
/* Path of the helper; NULL where it is off. */
const char *gpucr_recover_helper(void);
void gpucr_watch_init(struct gpucr_session *s);
void gpucr_watch_kick(struct gpucr_session *s);
void gpucr_watch_stop(struct gpucr_session *s);

#endif
