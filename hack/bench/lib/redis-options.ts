/** Of redis-server: it keeps an AOF, which goes to the disk every second. */
export const withAof = ['--save', '', '--appendonly', 'yes', '--appendfsync', 'everysec'];
