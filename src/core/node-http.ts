/**
 * The parts of `node:http` in use. An import of it reads each of its exports, among them WebSocket, and so loads the undici of Node: 12 MB.
 */
export const { Agent, createServer, request } = process.getBuiltinModule('node:http');
