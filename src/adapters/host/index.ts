// The machine the agent runs on: what it uses, and its files of lines.

export { type HostStats, watchHost } from './host-stats.ts'
export { followLog, type LogFollow, type LogLine, type LogQuery, readLog } from './log-file.ts'
