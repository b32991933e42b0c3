import { appendFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { version } from '../../src/cmd/version.ts';
import { AuditLog } from './audit-log.ts';

let directory: string;
let file: string;
let log: AuditLog;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'posthorn-audit-log-'));
  file = join(directory, 'audit.log');
  log = new AuditLog(file);
});
afterEach(() => rmSync(directory, { recursive: true }));

type Reference = { resource: string; namespace?: string; name?: string };
interface Request {
  by?: string;
  userAgent?: string;
  granted?: 'RoleBinding' | 'ClusterRoleBinding';
  code?: number;
  /** Role of the binding that grants it. */
  role?: string;
  atSeconds?: number;
}

const atTime = (seconds: number): string => new Date(seconds * 1000).toISOString();

const asked = (
  verb: string,
  objectRef: Reference,
  {
    by = 'controller',
    userAgent = `posthorn/${version}`,
    granted = 'ClusterRoleBinding',
    code = 200,
    role = 'a',
    atSeconds = 0,
  }: Request = {},
) =>
  `${JSON.stringify({
    requestReceivedTimestamp: atTime(atSeconds),
    verb,
    requestURI: '/',
    user: { username: `system:serviceaccount:posthorn-system:${by}` },
    userAgent,
    objectRef,
    responseStatus: { code, ...(code === 403 && { message: 'no' }) },
    annotations:
      code === 403
        ? {}
        : { 'authorization.k8s.io/reason': `RBAC: allowed by ${granted} "${by}" of ClusterRole "${role}" to ServiceAccount` },
  })}\n`;
const bindingIs = (verb: 'delete' | 'patch', name: string, responseStatus?: object) => {
  const objectRef = { resource: 'clusterrolebindings', name };
  const user = { username: 'admin' };
  return `${JSON.stringify({ requestReceivedTimestamp: atTime(0), verb, requestURI: '/', user, objectRef, responseStatus })}\n`;
};
const usedBy = (...lines: string[]): string[] => {
  appendFileSync(file, lines.join(''));
  return [...log.read().used];
};
const forbiddenBy = (...lines: string[]): number => {
  appendFileSync(file, lines.join(''));
  return log.read().forbidden.length;
};

test('a request uses a permission with and without the name of its object; one to make or list objects has no name', () => {
  expect(usedBy(asked('get', { resource: 'secrets', namespace: 'shop', name: 'key' }))).toEqual([
    'controller get secrets',
    'controller get secrets key',
  ]);
  expect(
    usedBy(asked('list', { resource: 'pods' }), asked('create', { resource: 'events', namespace: 'shop', name: 'made' })).slice(2),
  ).toEqual(['controller list pods', 'controller create events']);
});

test('an apply that makes its object creates it by its name, too', () => {
  expect(usedBy(asked('patch', { resource: 'namespaces', namespace: 'shop', name: 'shop' }, { code: 201 }))).toEqual([
    'controller patch namespaces',
    'controller patch namespaces shop',
    'controller create namespaces',
    'controller create namespaces shop',
  ]);
});

test('what a RoleBinding grants is told from what a ClusterRoleBinding does, and this from what could be in a Role', () => {
  const inSystem = { resource: 'pods', namespace: 'posthorn-system' };
  expect(usedBy(asked('list', inSystem))).toEqual([]);
  expect(usedBy(asked('list', inSystem, { granted: 'RoleBinding' }))).toEqual(['controller list pods in posthorn-system']);
  expect(usedBy(asked('list', { resource: 'pods', namespace: 'shop' })).slice(1)).toEqual(['controller list pods']);
});

test('what another program requests is no use, and nor is what was refused', () => {
  const pods = { resource: 'pods' };
  expect(usedBy(asked('list', pods, { userAgent: 'kubectl/v1.36.0' }), asked('list', pods, { code: 403 }))).toEqual([]);
});

test('a refusal is one for want of rights unless a binding of the service account is taken away, from when that begins', () => {
  const refused = asked('list', { resource: 'pods' }, { by: 'posthorn-api', code: 403 });
  expect(forbiddenBy(asked('list', { resource: 'organizations' }, { by: 'posthorn-uninstall' }), refused)).toBe(1);
  expect(forbiddenBy(bindingIs('delete', 'posthorn-controller'), refused)).toBe(2);
  expect(forbiddenBy(bindingIs('delete', 'posthorn-api'), refused, bindingIs('patch', 'posthorn-api'), refused)).toBe(2);
  expect(forbiddenBy(bindingIs('patch', 'posthorn-api', { code: 201 }), refused)).toBe(3);
});

test('a permission in the namespace of an organization has the same name in each of them', () => {
  const secrets = { resource: 'secrets', namespace: 'shop' };
  expect(usedBy(asked('list', secrets, { granted: 'RoleBinding', role: 'posthorn-organization-controller' }))).toEqual([
    'controller list secrets in namespaces of organizations',
  ]);
});

test('a refusal of Secrets counts once the binding in their namespace has been there for a while, until it goes', () => {
  const name = 'posthorn-organization-api';
  const by = 'posthorn-api';
  const refused = (atSeconds: number) =>
    asked('patch', { resource: 'secrets', namespace: 'shop', name: 'key' }, { by, code: 403, atSeconds });
  const bound = (verb: string, atSeconds: number, ...named: string[]) =>
    asked(verb, { resource: 'rolebindings', namespace: 'shop', ...(named[0] !== undefined && { name: named[0] }) }, { atSeconds });
  expect(forbiddenBy(refused(1), bound('patch', 10, name), refused(11))).toBe(0);
  expect(forbiddenBy(refused(20), bound('patch', 21, name), refused(22))).toBe(2);
  expect(forbiddenBy(bound('delete', 30, name), refused(31), bound('patch', 32, name), refused(33), refused(40))).toBe(3);
  expect(forbiddenBy(bound('deletecollection', 50), refused(60))).toBe(3);
});

test('a line that is not whole yet is read once it is', () => {
  const line = asked('list', { resource: 'pods' });
  expect(usedBy(line.slice(0, 100))).toEqual([]);
  expect(usedBy(line.slice(100, -1))).toEqual([]);
  expect(usedBy('\n')).toEqual(['controller list pods']);
  expect(usedBy()).toEqual(['controller list pods']);
});
