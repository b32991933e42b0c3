// The Node environment of Jest with a plain global object. In Jest's own environment each read of a global, `Math` included, goes through an interceptor and a Proxy
// and takes a hundred times as long.
import vm from 'node:vm';
import NodeEnvironment from 'jest-environment-node';
import './code-cache.js';

const { createContext } = vm;

export default class PlainEnvironment extends NodeEnvironment {
  constructor(...options) {
    vm.createContext = () => createContext(vm.constants.DONT_CONTEXTIFY);
    try {
      super(...options);
    } finally {
      vm.createContext = createContext;
    }
  }
}
