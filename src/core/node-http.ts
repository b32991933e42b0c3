/**
 * What is used of `node:http`. An import of it asks for each of its exports, among them WebSocket, and so loads the undici of Node: 12 MB.
 */
export const { Agent, createServer, request } = process.getBuiltinModule('node:http');
