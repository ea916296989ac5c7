// The module node:http, got so that nothing more is loaded with it: imported as an ES module it brings undici along, for
// the sake of a name it exports, which is 65 ms of every start and 13 MB.

export const http: typeof import('node:http') = process.getBuiltinModule('node:http')
